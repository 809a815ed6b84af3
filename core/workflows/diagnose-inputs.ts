import type { WorkflowNode } from '../dag/definition.ts'
import type { FailureDetail } from '../failure.ts'
import { failureOf } from '../schemas/issues.ts'
import { type Found, jsonType, type Kinds, kindsOf, kindsText, mayFit, walk } from '../schemas/schema-walk.ts'
import { requestFields } from '../tasks/request-fields.ts'
import type { NodeContext, TaskType } from './diagnose-node.ts'
import type { TypeIssue } from './diagnostics.ts'
import { suggested } from './diagnostics.ts'
import { outputPath } from './output-path.ts'
import type { Segment } from './references.ts'
import { checkRequest } from './request-check.ts'

/** So many references or fields are one step: each takes some microseconds, and so does it to begin a step. */
export const atOneStep = 16

/** What a reference that is a whole text gives, and where. */
export interface Given {
  at: readonly Segment[]
  path: string
  kinds: Kinds
  /** As it is written. */
  reference: string
}

/** The references in the inputs of a node. */
export interface InputReferences {
  /** Those that are a whole text, whose values keep their types. */
  given: readonly Given[]
  /** Places of texts that contain references, whose content is not known yet. */
  templates: readonly string[]
}

/** The literal values by the task's own schema; what references give by its type. A step for some references or fields. */
export function* diagnoseInputs(
  id: string,
  node: WorkflowNode,
  type: TaskType,
  { given, templates }: InputReferences,
  context: NodeContext,
): Generator<void, void> {
  const { issue, warn, offer } = context
  const model = node.model_id ? offer.model(node.model_id) : undefined
  let looked = 0
  for (const { at, path, kinds, reference } of given) {
    const expected = walk(type.request, at)
    if (type.isMediaPath(at) && isCoerced(kinds, expected)) {
      warn({
        code: 'coerced_media_reference',
        message: `Node '${id}': ${path} takes an address, and the reference gives an object; its 'url' is used.`,
        node_id: id,
        path,
        reference,
      })
    } else if (expected !== 'missing' && !mayFit(kinds, kindsOf(expected)))
      issue({
        code: 'type_mismatch',
        message: `nodes.${id}.${path} expects ${kindsText(kindsOf(expected))} but ${reference} is ${kindsText(kinds)}.`,
        node_id: id,
        path,
        expected: kindsText(kindsOf(expected)),
        actual: kindsText(kinds),
        reference,
      })
    if (++looked % atOneStep === 0) yield
  }
  const fields = requestFields(type, model?.extraParams ?? [])
  const known = new Set(fields)
  /** Fields that are there under another name, right or misspelt. */
  const named = new Set<string>()
  for (const field of Object.keys(node.inputs)) {
    const stands = type.otherFields[field]
    if (stands) named.add(stands)
    // A model that is not known may be configured to take the field.
    if (!known.has(field) && (model || !node.model_id)) {
      const meant = suggested(field, fields)
      if (meant.suggestion !== undefined) named.add(meant.suggestion)
      issue({
        code: 'unknown_input',
        message: `Node '${id}': ${node.task} has no input '${field}'.`,
        node_id: id,
        path: `inputs.${field}`,
        ...meant,
      })
    }
    if (++looked % atOneStep === 0) yield
  }
  if (Object.hasOwn(node.inputs, 'model') && node.inputs.model !== node.model_id)
    warn({
      code: 'unknown_field',
      message: `Node '${id}': its model is '${node.model_id}'; 'model' in the inputs is not looked at.`,
      node_id: id,
      path: 'inputs.model',
    })

  const found: FailureDetail[] = []
  const whole = { ...node.inputs, model: node.model_id || 'any' }
  const wrong = checkRequest(type.request, whole)
  if (wrong) {
    const { code, message, param = '', details } = failureOf(wrong, whole)
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
    // Whether it is right depends on what the reference gives.
    if (given.some(one => isWithin(one.path, path) || isWithin(path, one.path))) continue
    if (detail.code !== 'invalid_type' && templates.includes(path)) continue
    if (detail.code === 'missing_required_parameter' && named.has(detail.path)) continue
    issue({
      code: issueOf[detail.code] ?? 'value_out_of_range',
      message: `Node '${id}': ${detail.message}`,
      node_id: id,
      path,
      ...(detail.code === 'invalid_type' ? typesAt(detail.path, node, type) : {}),
    })
  }
}

/** What is expected at a place, and what is there. */
function typesAt(path: string, { inputs }: WorkflowNode, type: TaskType): { expected?: string; actual?: string } {
  const at = outputPath(path)
  const kinds = at && kindsOf(walk(type.request, at))
  if (!at || !kinds || kinds === 'anything') return {}
  const value = at.reduce<unknown>((now, step) => (now as Record<Segment, unknown> | null | undefined)?.[step], inputs)
  return { expected: kindsText(kinds), actual: jsonType(value) }
}

const issueOf: Readonly<Record<string, TypeIssue['code']>> = {
  missing_required_parameter: 'missing_input',
  invalid_type: 'type_mismatch',
}

const isWithin = (place: string, outer: string): boolean =>
  place === outer || place.startsWith(`${outer}.`) || place.startsWith(`${outer}[`)

/** Whether an object or a list stands where the address of a file is expected. */
const isCoerced = (given: Kinds, expected: Found): boolean =>
  given !== 'anything' && (given.has('object') || given.has('array')) && !mayFit(given, kindsOf(expected))
