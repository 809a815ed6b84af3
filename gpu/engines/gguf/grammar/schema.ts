import { Failure } from '../../../../core/failure.ts'
import type { RulePart } from './rules.ts'

export interface Origin {
  /** The `param` of the Failure: `response_format` or `tools`. */
  param: string
  /** JSON path of the schema: `response_format.json_schema.schema`, `tools[0].function.parameters`. */
  path: string
}

/** A Failure of one keyword or schema, which a schema that only describes can do without. */
export class SchemaFailure extends Failure {
  /** JSON path of the keyword or the schema. */
  readonly path: string
  constructor(code: 'invalid_value' | 'unsupported_parameter', path: string, message: string, param: string) {
    super(code, message, { param })
    this.path = path
  }
}

export interface SchemaNode {
  id: number
  schema: Record<string, unknown> | boolean
  path: string
  document: SchemaDocument
}

/** Returns the rule of values that satisfy all the schemas. */
export type RuleOf = (schemaNodes: readonly SchemaNode[]) => RulePart

/** One schema of the request and the schemas that it refers to. */
export class SchemaDocument {
  readonly root: SchemaNode
  /**
   * The paths of the keywords and schemas that are treated as absent, for a schema that only describes. Undefined:
   * whatever cannot be kept is refused.
   */
  readonly leftOut: Set<string> | undefined
  #origin: Origin
  #nextId: () => number
  #known = new Map<object, SchemaNode>()
  #byText = new Map<string, SchemaNode>()

  /** `nextId` numbers the nodes of all schemas of a grammar. */
  constructor(root: unknown, origin: Origin, nextId: () => number, leftOut?: Set<string>) {
    this.#origin = origin
    this.#nextId = nextId
    this.leftOut = leftOut
    this.root = this.schemaNode(root, origin.path)
  }

  invalid(path: string, what: string): never {
    throw new SchemaFailure('invalid_value', path, `'${path}' ${what}.`, this.#origin.param)
  }

  unsupported(path: string, what: string): never {
    const message = `The built-in engine cannot keep to '${path}': ${what}.`
    throw new SchemaFailure('unsupported_parameter', path, message, this.#origin.param)
  }

  /** Returns the schema under a keyword of another. Throws Failure `invalid_value` if it is no schema. */
  schemaNode(schema: unknown, path: string): SchemaNode {
    if (this.leftOut?.has(path)) return { id: this.#nextId(), schema: true, path, document: this }
    if (typeof schema === 'boolean') return { id: this.#nextId(), schema, path, document: this }
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
      return this.invalid(path, 'is no JSON Schema, which is an object or a boolean')
    const known = this.#known.get(schema)
    if (known) return known
    // Equal schemas share one node, which is named by the path of the first.
    const text = JSON.stringify(schema)
    const made = this.#byText.get(text) ?? {
      id: this.#nextId(),
      schema: schema as Record<string, unknown>,
      path,
      document: this,
    }
    this.#byText.set(text, made)
    this.#known.set(schema, made)
    return made
  }

  /** Returns the schema that `$ref` refers to; local pointers only. Throws Failure. */
  target(reference: string, path: string): SchemaNode {
    if (!reference.startsWith('#'))
      this.unsupported(path, `'${reference}' is outside of the schema; only references within it are followed`)
    let at: unknown = this.root.schema
    let to = this.#origin.path
    for (const part of pointerOf(reference) ?? this.unsupported(path, `'${reference}' is no JSON Pointer`)) {
      if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part))
        return this.invalid(path, `refers to '${reference}', which is not there`)
      at = (at as Record<string, unknown>)[part]
      to += Array.isArray(at) ? `[${part}]` : `.${part}`
    }
    return this.schemaNode(at, to)
  }
}

/** Returns the keys of a JSON Pointer in a URI fragment; undefined for other fragments. */
function pointerOf(reference: string): string[] | undefined {
  try {
    const [start, ...parts] = decodeURIComponent(reference.slice(1)).split('/')
    return start === '' ? parts.map(part => part.replaceAll('~1', '/').replaceAll('~0', '~')) : undefined
  } catch {
    return undefined
  }
}

/** Whether a value has at most 5000 parts of 200,000 characters, nested at most 100 deep; found without recursion. */
export function sizeWithin(value: unknown): boolean {
  let characters = 0
  const open: { value: unknown; depth: number }[] = [{ value, depth: 0 }]
  for (let seen = 0; open.length > 0; seen++) {
    const next = open.pop()!
    if (seen > 5000 || next.depth > 100) return false
    if (typeof next.value === 'string') characters += next.value.length
    if (characters > 200_000) return false
    if (typeof next.value !== 'object' || next.value === null) continue
    for (const [name, part] of Object.entries(next.value)) {
      characters += name.length
      open.push({ value: part, depth: next.depth + 1 })
    }
  }
  return true
}
