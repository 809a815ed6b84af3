import { hash } from 'node:crypto'

type Json = Record<string, unknown>

/**
 * An OpenAPI description as text that people review: one line for each operation, parameter, body, answer, schema and field,
 * and for the errors of each status. Prose and examples are there as the first digits of their hash (`#1a2b3c4d`), so every
 * change of the description changes a line. The version of infer is left out.
 */
export const apiText = (api: object): string => apiParts(api).join('\n\n').concat('\n')

/** The text in parts that do not depend on each other: the head, each operation, each component. */
export function apiParts(api: object): string[] {
  const { info, tags, paths, components, ...head } = api as {
    info: Json
    tags: Json[]
    paths: Record<string, Record<string, Json>>
    components: Record<string, Record<string, Json>>
  }
  return [
    headText(head, info, tags),
    ...Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => operationText(method, path, operation)),
    ),
    ...Object.entries(components).flatMap(([kind, all]) =>
      Object.entries(all).map(([name, component]) => componentText(kind, name, component)),
    ),
  ]
}

export function headText(head: Json, info: Json, tags: Json[]): string {
  const about = Object.fromEntries(Object.entries(info).filter(([name]) => name !== 'version'))
  return [
    `api${rest(head)}`,
    `info${rest(about)}`,
    ...tags.map(({ name, ...more }) => `tag ${JSON.stringify(name)}${rest(more)}`),
  ].join('\n')
}

/** Kinds of components with a format of their own. All others are written as JSON. */
const components: Record<string, (name: string, component: Json) => string[]> = {
  schemas: (name, schema) => schemaLines(name, schema),
  responses: (name, answer) => answerLines(`answer ${name}`, answer),
  headers: (name, header) => memberLines(`header ${name}`, header),
  parameters: (name, parameter) => parameterLines(`parameter ${name}`, parameter),
}

export const componentText = (kind: string, name: string, component: Json): string =>
  (components[kind]?.(name, component) ?? [`${kind} ${name}${rest(component)}`]).join('\n')

export function operationText(method: string, path: string, operation: Json): string {
  const {
    parameters = [],
    requestBody,
    responses = {},
    summary,
    operationId,
    tags,
    ...more
  } = operation as {
    parameters?: Json[]
    requestBody?: Json
    responses?: Record<string, Json>
  } & Json
  const name = `${method.toUpperCase()} ${path}`
  const head = [operationId, summary, tags].map(value => ` ${JSON.stringify(value)}`).join('')
  const given = ['parameters', 'requestBody', 'responses'].filter(key => key in operation).map(key => key[0])
  const shared = Object.entries(responses).filter(([, answer]) => isReference(answer))
  return [
    `${name}${head} ${given.join('')}${rest(more)}`,
    ...parameters.flatMap(parameter => parameterLines('  ', parameter)),
    ...(requestBody ? bodyLines('  body', requestBody) : []),
    ...Object.entries(responses)
      .filter(([, answer]) => !isReference(answer))
      .flatMap(([status, answer]) => answerLines(`  ${status}`, answer)),
    ...(shared.length > 0
      ? [`  ${shared.map(([status, answer]) => `${status} ${reference(answer)}`).join(', ')}`]
      : []),
  ].join('\n')
}

function parameterLines(label: string, parameter: Json): string[] {
  if (isReference(parameter)) return [`${label}${reference(parameter)}`]
  const { name, in: place, ...more } = parameter
  return memberLines(`${label}${String(place)} ${JSON.stringify(name)}`, more)
}

/** A parameter or a header: what it says of itself, then its schema, on the same line if that has one line. */
function memberLines(label: string, { schema, ...more }: Json): string[] {
  return schema === undefined
    ? [`${label}${rest(more)}`]
    : schemaLines(`${label}${rest(more)} :`, schema as Json, label)
}

function bodyLines(label: string, { content, ...more }: Json): string[] {
  return [...(content === undefined ? [] : contentLines(`${label}${rest(more)}`, content as Json))]
}

function answerLines(label: string, { description, content, headers, ...more }: Json): string[] {
  const codes = [...String(description).matchAll(/^`(\w+)`:/gm)].map(([, code]) => ` ${code}`).join('')
  const head = `${label}${codes}${rest({ ...(description === undefined ? {} : { description }), ...more })}`
  return [
    ...(content === undefined ? [head] : contentLines(head, content as Json)),
    ...Object.entries((headers ?? {}) as Record<string, Json>).flatMap(([name, header]) =>
      isReference(header)
        ? [`${label} header ${name} ${reference(header)}`]
        : memberLines(`${label} header ${name}`, header),
    ),
    ...(headers && Object.keys(headers).length === 0 ? [`${label} headers {}`] : []),
  ]
}

function contentLines(head: string, content: Json): string[] {
  const types = Object.entries(content as Record<string, Json>)
  if (types.length === 0) return [`${head} content {}`]
  return types.flatMap(([type, { schema, ...more }], index) => {
    const label = `${index === 0 ? head : `${head.slice(0, head.search(/\S/))}  or`} ${type}${rest(more)}`
    return schema === undefined ? [label] : schemaLines(`${label} :`, schema as Json, label.trimEnd())
  })
}

/** Keywords whose values are schemas. */
const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const singles = ['items', 'additionalProperties', 'propertyNames', 'not', 'contains']

/** A schema on one line, and a line for each field, the fields of its items and of its alternatives. */
function schemaLines(label: string, schema: Json, path = label): string[] {
  const {
    properties,
    required = [],
    ...own
  } = schema as { properties?: Record<string, Json>; required?: string[] } & Json
  const below: string[] = []
  const within = /^\s/.test(path) ? '    ' : path
  const nested = (key: string, value: unknown): string => {
    const text = inline(value)
    if (text !== undefined) return text
    below.push(...schemaLines(`${within}<${key}>`, value as Json))
    return `<${key}>`
  }
  const tokens = Object.entries(own).map(([key, value]) => {
    if (lists.includes(key) && Array.isArray(value))
      return `${key}(${value.map((one, index) => nested(`${key}${index}`, one)).join(' | ')})`
    if (singles.includes(key) && isObject(value)) return `${key}(${nested(key, value)})`
    return token(key, value)
  })
  const fields = Object.entries(properties ?? {}).flatMap(([name, field]) =>
    schemaLines(`${within}.${name}${required.includes(name) ? '' : '?'}`, field),
  )
  const strange = required.filter(name => !Object.hasOwn(properties ?? {}, name))
  if (properties) tokens.push('{…}')
  if ('required' in schema) tokens.push(`required=${required.length}${strange.map(name => `+${name}`).join('')}`)
  return [[label, ...tokens].join(' '), ...below, ...fields]
}

/** A schema without fields and prose, in the place where it is used. */
function inline(schema: unknown): string | undefined {
  if (!isObject(schema)) return JSON.stringify(schema)
  if ('properties' in schema || 'required' in schema || 'description' in schema) return undefined
  const tokens: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (lists.includes(key) && Array.isArray(value)) {
      const all = value.map(inline)
      if (all.includes(undefined)) return undefined
      tokens.push(`${key}(${all.join(' | ')})`)
    } else if (singles.includes(key) && isObject(value)) {
      const text = inline(value)
      if (text === undefined) return undefined
      tokens.push(`${key}(${text})`)
    } else tokens.push(token(key, value))
  }
  return tokens.join(' ')
}

/** One keyword with its value. */
function token(key: string, value: unknown): string {
  if (key === 'description' && typeof value === 'string') return digest(value)
  if (key === 'example' || key === 'examples') return `${key}${digest(JSON.stringify(value))}`
  if (key === '$ref' && typeof value === 'string') return short(value)
  if (key === 'type' && typeof value === 'string') return value
  if (key === 'enum' && Array.isArray(value)) return `enum(${value.map(one => JSON.stringify(one)).join('|')})`
  return `${key}=${JSON.stringify(value)}`
}

const rest = (members: Json): string =>
  Object.entries(members)
    .map(([key, value]) => ` ${token(key, value)}`)
    .join('')

/** Kept, because the test writes the text of an operation once for each change of it. */
const digests = new Map<string, string>()
function digest(text: string): string {
  const known = digests.get(text)
  if (known !== undefined) return known
  const made = `#${hash('sha256', text).slice(0, 8)}`
  digests.set(text, made)
  return made
}

const short = (ref: string): string => ref.replace('#/components/schemas/', '@').replace('#/components/', '@/')
const reference = ({ $ref, ...more }: Json): string => `${short(String($ref))}${rest(more)}`
const isReference = (value: Json): boolean => '$ref' in value
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
