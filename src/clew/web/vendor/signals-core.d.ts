export interface Signal<T> {
  value: T
  peek(): T
  subscribe(run: (value: T) => void): () => void
}
export interface ReadonlySignal<T> {
  readonly value: T
  peek(): T
}
export function signal<T>(value: T): Signal<T>
export function computed<T>(make: () => T): ReadonlySignal<T>
export function effect(run: () => void | (() => void)): () => void
export function batch<T>(run: () => T): T
export function untracked<T>(run: () => T): T
