// Types of what the page uses of htm/preact, whose standalone module comes without any.
// Functions among the values are listeners and other props: what they are given has no type.
export type Value = ((...given: any[]) => any) | object | string | number | boolean | bigint | null | undefined;
export function html(strings: TemplateStringsArray, ...values: Value[]): any;
export function render(what: any, where: Element): void;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(run: () => void | (() => void), on?: readonly unknown[]): void;
export function useLayoutEffect(run: () => void | (() => void), on?: readonly unknown[]): void;
// Without a value it is for an element.
export function useRef(first: null): { current: HTMLElement | null };
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, on: readonly unknown[]): T;
export function useCallback<T>(run: T, on: readonly unknown[]): T;
