/** The entry of the dashboard. */

document.getElementById("app")?.append("Clew is running.")
