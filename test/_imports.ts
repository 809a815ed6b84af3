import { dirname, join, normalize } from 'node:path'

/** An import of a text. */
interface Import {
  /** As it is written: the name of a package, or a path that begins with a dot. */
  from: string
  /** `type`: nothing is imported at run time. `dynamic`: only when the expression is evaluated. */
  kind: 'value' | 'type' | 'dynamic'
}

/** What stands between `import` or `export` and `from`; only braces hold line breaks. */
const clause = String.raw`[\w$*, ]*(?:\{[^{}'"]*\})?`
const pattern = new RegExp(
  [
    String.raw`^(?:import|export)\s+(type\s+(?!from\s))?(?:(${clause})\s+from\s+)?['"]([^'"]+)['"]`,
    String.raw`\b(?:import|require)\(\s*['"]([^'"]+)['"]`,
  ].join('|'),
  'gm',
)
/** `{ type A, type B }` */
const onlyTypes = /^\{(\s*type\s[^,]+,?)+\s*\}$/

/** Every import of a text, and every export from another module. */
export const importsIn = (text: string): Import[] =>
  [...text.matchAll(pattern)].map(([, type, names = '', from, dynamic]) =>
    from === undefined
      ? { from: dynamic!, kind: 'dynamic' }
      : { from, kind: type || onlyTypes.test(names) ? 'type' : 'value' },
  )

/** Returns what a file imports: own files by their paths from the root, packages by name. */
export const importedPath = (path: string, { from }: Import): string =>
  from.startsWith('.') ? normalize(join(dirname(path), from)) : from
