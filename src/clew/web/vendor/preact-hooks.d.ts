type Setter<T> = (value: T | ((before: T) => T)) => void
export function useState<T>(initial: T | (() => T)): [T, Setter<T>]
export function useEffect(run: () => void | (() => void), inputs?: unknown[]): void
export function useLayoutEffect(run: () => void | (() => void), inputs?: unknown[]): void
export function useMemo<T>(make: () => T, inputs: unknown[]): T
export function useRef<T>(initial: T): { current: T }
