import type { WorkflowNode } from '../dag/definition.ts'
import { failureOf } from '../schemas/issues.ts'
import type { NodeContext, TaskType } from './diagnose-node.ts'
import type { TypeIssue } from './diagnostics.ts'
import type { Segment } from './references.ts'
import { type Found, type Kinds, kindsOf, kindsText, mayFit, walk } from './schema-walk.ts'

/** What a reference that is a whole text gives, and where. */
export interface Given {
  at: readonly Segment[]
  path: string
  kinds: Kinds
}

/** The literal values by the task's own schema; what references give by its type. */
export function diagnoseInputs(
  id: string,
  node: WorkflowNode,
  type: TaskType,
  given: readonly Given[],
  context: NodeContext,
): void {
  const { issue, warn } = context
  for (const { at, path, kinds } of given) {
    const expected = walk(type.inputs, at)
    if (coerced(kinds, expected, path)) {
      warn({
        code: 'coerced_media_reference',
        message: `Node '${id}': ${path} takes an address, and the reference gives an object; its 'url' is used.`,
        node_id: id,
        path,
      })
    } else if (expected !== 'missing' && !mayFit(kinds, kindsOf(expected)))
      issue({
        code: 'type_mismatch',
        message: `nodes.${id}.${path} expects ${kindsText(kindsOf(expected))}, and the reference gives ${kindsText(kinds)}.`,
        node_id: id,
        path,
        expected: kindsText(kindsOf(expected)),
        actual: kindsText(kinds),
      })
  }
  for (const field of Object.keys(node.inputs))
    if (walk(type.inputs, [field]) === 'missing')
      warn({
        code: 'unknown_field',
        message: `Node '${id}': ${node.task} has no input '${field}'.`,
        node_id: id,
        path: `inputs.${field}`,
      })

  const whole = { ...node.inputs, model: node.model_id || 'any' }
  const checked = type.request.safeParse(whole)
  if (checked.success) return
  const failure = failureOf(checked.error, whole)
  const { code, message, param = '' } = failure
  for (const wrong of failure.details ?? [{ code, message, path: param }]) {
    const path = `inputs.${wrong.path}`
    // Whether it is right depends on what the reference gives.
    if (given.some(one => isWithin(one.path, path) || isWithin(path, one.path))) continue
    issue({
      code: issueOf[wrong.code] ?? 'value_out_of_range',
      message: `Node '${id}': ${wrong.message}`,
      node_id: id,
      path,
    })
  }
}

const issueOf: Readonly<Record<string, TypeIssue['code']>> = {
  missing_required_parameter: 'missing_input',
  invalid_type: 'type_mismatch',
}

const isWithin = (place: string, outer: string): boolean =>
  place === outer || place.startsWith(`${outer}.`) || place.startsWith(`${outer}[`)

const mediaField = /(^|\.)(image|mask|video|audio)(_url)?$|(^|\.)file$/
/** Whether an object or a list stands where the address of a file is expected. */
const coerced = (given: Kinds, expected: Found, path: string): boolean =>
  mediaField.test(path) &&
  given !== 'anything' &&
  (given.has('object') || given.has('array')) &&
  !mayFit(given, kindsOf(expected))
