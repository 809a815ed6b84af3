import { Failure } from '../../../../core/failure.ts'

export interface Origin {
  /** The `param` of the Failure: `response_format` or `tools`. */
  param: string
  /** JSON path of the schema: `response_format.json_schema.schema`, `tools[0].function.parameters`. */
  path: string
}

export interface SchemaNode {
  id: number
  schema: Record<string, unknown> | boolean
  path: string
  document: SchemaDocument
}

/** Returns the rule of values that satisfy all the schemas. */
export type RuleOf = (schemaNodes: readonly SchemaNode[]) => string

/** One schema of the request and the schemas that it refers to. */
export interface SchemaDocument {
  root: SchemaNode
  /** Returns the schema under a keyword of another. Throws Failure `invalid_value` if it is no schema. */
  schemaNode(schema: unknown, path: string): SchemaNode
  /** Returns the schema that `$ref` refers to; local pointers only. Throws Failure. */
  target(reference: string, path: string): SchemaNode
  invalid(path: string, what: string): never
  unsupported(path: string, what: string): never
}

/** `nextId` numbers the nodes of all schemas of a grammar. */
export function openDocument(root: unknown, { param, path }: Origin, nextId: () => number): SchemaDocument {
  const schemaNodes = new Map<object, SchemaNode>()
  const texts = new Map<string, SchemaNode>()

  const invalid = (where: string, what: string): never => {
    throw new Failure('invalid_value', `'${where}' ${what}.`, { param })
  }
  const unsupported = (where: string, what: string): never => {
    throw new Failure('unsupported_parameter', `The built-in engine cannot keep to '${where}': ${what}.`, { param })
  }
  const schemaNode = (schema: unknown, where: string): SchemaNode => {
    if (typeof schema === 'boolean') return { id: nextId(), schema, path: where, document }
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
      return invalid(where, 'is no JSON Schema, which is an object or a boolean')
    const known = schemaNodes.get(schema)
    if (known) return known
    // Equal schemas share one node, which is named by the path of the first.
    const text = JSON.stringify(schema)
    const made = texts.get(text) ?? { id: nextId(), schema: schema as Record<string, unknown>, path: where, document }
    texts.set(text, made)
    schemaNodes.set(schema, made)
    return made
  }
  const target = (reference: string, where: string): SchemaNode => {
    if (!reference.startsWith('#'))
      return unsupported(where, `'${reference}' is outside of the schema; only references within it are followed`)
    let at = root
    let to = path
    for (const part of pointerOf(reference) ?? unsupported(where, `'${reference}' is no JSON Pointer`)) {
      if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part))
        return invalid(where, `refers to '${reference}', which is not there`)
      at = (at as Record<string, unknown>)[part]
      to += Array.isArray(at) ? `[${part}]` : `.${part}`
    }
    return schemaNode(at, to)
  }
  const document: SchemaDocument = {
    root: undefined as unknown as SchemaNode,
    schemaNode,
    target,
    invalid,
    unsupported,
  }
  document.root = schemaNode(root, path)
  return document
}

/** Returns the keys of a JSON Pointer in a URI fragment; undefined for other fragments. */
function pointerOf(reference: string): string[] | undefined {
  let pointer: string
  try {
    pointer = decodeURIComponent(reference.slice(1))
  } catch {
    return undefined
  }
  if (pointer === '') return []
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
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
