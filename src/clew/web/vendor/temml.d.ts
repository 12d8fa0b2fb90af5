declare const temml: {
  renderToString(
    source: string,
    options: { displayMode: boolean; throwOnError: boolean; trust: boolean; maxExpand: number },
  ): string
}
export default temml
