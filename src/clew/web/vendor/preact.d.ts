/** The part of Preact that the dashboard uses. */
export type Child = any
export function h(type: any, props?: any, ...children: Child[]): any
export function render(node: any, parent: Element): void
export const Fragment: any
