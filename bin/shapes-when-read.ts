import { parseAst } from 'rolldown/parseAst'

/** Functions of zod that make the schema of an object of a shape, and ours that pass one on as their last argument. */
const ofZod = new Set(['object', 'strictObject', 'looseObject'])
const ours = new Set([...ofZod, 'objects', 'namedObject', 'optionalObject', 'nullishObject', 'section'])
/** The files that have ours: core/schemas/fields.ts and core/config.ts. */
const withOurs = /\/(fields|config)\.ts$/

/** What is read of a syntax tree in the form of ESTree. */
interface Tree {
  type: string
  start: number
  end: number
  callee?: Tree & { name?: string; object?: { name?: string }; property?: { name?: string } }
  arguments?: Tree[]
  /** Of an import: what it names, and from where. */
  specifiers?: { local: { name: string } }[]
  source?: { value: string }
}

/**
 * The source with each literal shape of a schema as a function that makes it: `z.object({a: …})` as `z.object(() => ({a: …}))`. zod's
 * functions, patched below, call it when the shape is first read. Of 8,700 schemas most describe requests and answers that a
 * server never sees.
 */
export function shapesWhenRead(source: string): string {
  if (!/\b(object|objects|\w+Object|section)\(/.test(source)) return source
  const imported = new Set<string>()
  const places: { at: number; text: string }[] = []
  walk(parseAst(source, { lang: 'ts' }), ({ type, callee, arguments: given = [], specifiers = [], source: from }) => {
    if (type === 'ImportDeclaration' && withOurs.test(from!.value))
      for (const { local } of specifiers) if (ours.has(local.name)) imported.add(local.name)
    if (type !== 'CallExpression' || !callee) return
    const isZod = callee.object?.name === 'z' && ofZod.has(callee.property?.name ?? '')
    const isOurs = callee.type === 'Identifier' && imported.has(callee.name ?? '')
    const shape = isZod ? given[0] : isOurs ? given.at(-1) : undefined
    if (shape?.type !== 'ObjectExpression') return
    places.push({ at: shape.start, text: '() => (' }, { at: shape.end, text: ')' })
  })
  const sorted = places.toSorted((a, b) => a.at - b.at)
  let done = 0
  const parts = sorted.map(({ at, text }) => {
    const before = source.slice(done, at)
    done = at
    return before + text
  })
  return parts.join('') + source.slice(done)
}

function walk(tree: unknown, see: (tree: Tree) => void): void {
  if (Array.isArray(tree)) {
    for (const one of tree) walk(one, see)
  } else if (typeof tree === 'object' && tree !== null) {
    if ('type' in tree) see(tree as Tree)
    for (const one of Object.values(tree)) walk(one, see)
  }
}

const makes = (name: string, catchall: string) =>
  [
    `export function ${name}(shape, params) {\n`,
    `export function ${name}(shape, params) {
    if (typeof shape === 'function') return objectWhenRead(shape, { ${catchall}...util.normalizeParams(params) });\n`,
  ] as const

/** Of the file with zod's functions. A definition that answers `shape` from an accessor of its own is part of zod's interface. */
export const zodMakesShapesWhenRead: readonly (readonly [from: string, to: string])[] = [
  makes('object', ''),
  makes('strictObject', 'catchall: never(), '),
  makes('looseObject', 'catchall: unknown(), '),
  [
    'export const ZodUnion = ',
    `function objectWhenRead(make, others) {
    let shape;
    const def = { type: 'object', get shape() {
        if (shape === undefined) Object.defineProperty(def, 'shape', { value: shape = { ...make() } });
        return shape;
    }, ...others };
    return new ZodObject(def);
}
export const ZodUnion = `,
  ],
]
