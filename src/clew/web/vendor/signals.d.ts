import type { ReadonlySignal, Signal } from "./signals-core.d.ts"
export function useSignal<T>(value: T): Signal<T>
export function useComputed<T>(make: () => T): ReadonlySignal<T>
