import { z } from 'zod'
import type { WorkflowNode } from '../dag/definition.ts'
import type { FailureDetail } from '../failure.ts'
import { failureOfIssues } from '../schemas/issues.ts'
import { jsonType, type Kinds, kindsOf, kindsText, mayFit, type SchemasAtPath, walk } from '../schemas/schema-walk.ts'
import { isWithoutModel } from '../tasks/registry.ts'
import { requestFields } from '../tasks/request-fields.ts'
import type { NodeContext, TaskType } from './diagnose-node.ts'
import { suggested, type TypeIssue } from './diagnostics.ts'
import { outputPath } from './prune.ts'
import type { ReferenceStep } from './references.ts'

/** How many references or fields one step of the generator handles: each takes microseconds, and so does a step. */
export const stepSize = 16

/** The types of a reference that is a whole text, and its position. */
export interface Given {
  at: readonly ReferenceStep[]
  path: string
  kinds: Kinds
  /** The reference as text. */
  reference: string
}

/** The references in the inputs of a node. */
export interface InputReferences {
  /** References that are a whole text, whose values keep their types. */
  given: readonly Given[]
  /** Positions of texts that contain references, whose content is not known yet. */
  templates: readonly string[]
}

/**
 * Checks literal values with the task's own schema, and references by type. Yields after every few references or
 * fields.
 */
export function* diagnoseInputs(
  id: string,
  node: WorkflowNode,
  type: TaskType,
  { given, templates }: InputReferences,
  context: NodeContext,
): Generator<void, void> {
  const { issue, warn, offer } = context
  const model = node.model_id ? offer.model(node.model_id) : undefined
  let checked = 0
  for (const { at, path, kinds, reference } of given) {
    const expected = walk(type.request, at)
    if (type.isMediaPath(at) && isCoerced(kinds, expected)) {
      warn(
        'coerced_media_reference',
        `Node '${id}': ${path} takes an address, and the reference gives an object; its 'url' is used.`,
        { path, reference },
      )
    } else if (expected !== 'missing' && !mayFit(kinds, kindsOf(expected)))
      issue(
        'type_mismatch',
        `nodes.${id}.${path} expects ${kindsText(kindsOf(expected))} but ${reference} is ${kindsText(kinds)}.`,
        { path, expected: kindsText(kindsOf(expected)), actual: kindsText(kinds), reference },
      )
    if (++checked % stepSize === 0) yield
  }
  const fields = requestFields(type, model?.extraParams ?? [])
  const known = new Set(fields)
  /** Fields that are present under another name, an alias or a misspelling. */
  const named = new Set<string>()
  for (const field of Object.keys(node.inputs)) {
    const meantField = type.otherFields[field]
    if (meantField) named.add(meantField)
    // An unknown model may be configured to accept the field.
    if (!known.has(field) && (model || !node.model_id || isWithoutModel(type))) {
      const meant = suggested(field, fields)
      if (meant.suggestion !== undefined) named.add(meant.suggestion)
      issue('unknown_input', `Node '${id}': ${node.task} has no input '${field}'.`, {
        path: `inputs.${field}`,
        ...meant,
      })
    }
    if (++checked % stepSize === 0) yield
  }
  if (Object.hasOwn(node.inputs, 'model') && node.inputs.model !== node.model_id)
    warn('unknown_field', `Node '${id}': its model is '${node.model_id}'; 'model' in the inputs is ignored.`, {
      path: 'inputs.model',
    })

  const found: FailureDetail[] = []
  const whole = { ...node.inputs, model: node.model_id || 'any' }
  const wrong = checkRequest(type.request, whole)
  if (wrong) {
    const { code, message, param = '', details } = failureOfIssues(wrong, whole)
    found.push(...(details ?? [{ code, message, path: param }]))
  }
  if (model) {
    const isOpen = (field: string) =>
      [...given.map(({ path }) => path), ...templates].some(path => isWithin(path, `inputs.${field}`))
    const literals = Object.fromEntries(Object.entries(node.inputs).filter(([field]) => !isOpen(field)))
    for (const fault of type.modelFaults(literals, model))
      if (!found.some(({ path }) => path === fault.path)) found.push(fault)
  }
  for (const detail of found) {
    const path = `inputs.${detail.path}`
    // The referenced value decides whether it is valid.
    if (given.some(one => isWithin(one.path, path) || isWithin(path, one.path))) continue
    if (detail.code !== 'invalid_type' && templates.includes(path)) continue
    if (detail.code === 'missing_required_parameter' && named.has(detail.path)) continue
    issue(issueOf[detail.code] ?? 'value_out_of_range', `Node '${id}': ${detail.message}`, {
      path,
      ...(detail.code === 'invalid_type' ? typesAt(detail.path, node, type) : {}),
    })
  }
}

/** The expected and the actual type at a position. */
function typesAt(path: string, { inputs }: WorkflowNode, type: TaskType): { expected?: string; actual?: string } {
  const at = outputPath(path)
  const kinds = at && kindsOf(walk(type.request, at))
  if (!at || !kinds || kinds === 'anything') return {}
  const value = at.reduce<unknown>(
    (now, step) => (now as Record<ReferenceStep, unknown> | null | undefined)?.[step],
    inputs,
  )
  return { expected: kindsText(kinds), actual: jsonType(value) }
}

const issueOf: Readonly<Record<string, TypeIssue['code']>> = {
  missing_required_parameter: 'missing_input',
  invalid_type: 'type_mismatch',
}

const isWithin = (place: string, outer: string): boolean =>
  place === outer || place.startsWith(`${outer}.`) || place.startsWith(`${outer}[`)

/** Whether an object or a list is given where the URL of a file is expected. */
const isCoerced = (given: Kinds, expected: SchemasAtPath): boolean =>
  given !== 'anything' && (given.has('object') || given.has('array')) && !mayFit(given, kindsOf(expected))

/**
 * Compiling a schema pays only after thousands of values; a workflow has a few hundred, and the first must not wait.
 */
const withoutCompiling = { jitless: true }

/**
 * The schema's error for a request, or undefined. The fast path checks only the fields that the request has, because a
 * request typically has four of the thirty fields that a task knows. If that fails, the whole request is checked to get
 * the complete error.
 */
export function checkRequest(schema: z.ZodType, request: Readonly<Record<string, unknown>>): z.ZodError | undefined {
  return areFieldsValid(schema, request) ? undefined : schema.safeParse(request).error
}

const required = new WeakMap<z.core.$ZodObject, readonly string[]>()

function areFieldsValid(schema: z.ZodType, request: Readonly<Record<string, unknown>>): boolean {
  if (!(schema instanceof z.ZodObject)) return false
  const { shape, catchall, checks } = schema.def
  // Such a schema has rules for the whole object, or for fields that it does not name.
  if (catchall !== undefined || (checks !== undefined && checks.length > 0)) return false
  let needed = required.get(schema)
  if (!needed) {
    needed = Object.keys(shape).filter(name => shape[name]!._zod.optin === undefined)
    required.set(schema, needed)
  }
  for (const name of needed) if (!Object.hasOwn(request, name)) return false
  for (const name of Object.keys(request)) {
    if (!Object.hasOwn(shape, name)) continue
    if (!z.core.safeParse(shape[name], request[name], withoutCompiling).success) return false
  }
  return true
}
