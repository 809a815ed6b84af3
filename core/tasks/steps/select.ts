import { ConditionFault, passes } from '../../dag/condition.ts'
import { Failure } from '../../failure.ts'
import { isObject } from '../../json.ts'
import { loadPatterns, type Pattern } from '../../pattern.ts'
import { parsed } from '../../schemas/issues.ts'
import { type SelectCondition, type Selection, SelectRequest, SelectResult } from '../../schemas/steps.ts'
import { valueAt, valuePath } from '../../value-path.ts'
import type { StepTaskRecord } from '../task.ts'
import { maxValues, requireSize, tooLarge } from './size.ts'
import { stepTask } from './step-task.ts'

type Compile = (pattern: string) => Pattern

/** Selects and arranges parts of a value. Throws Failure `invalid_value` that names the step at fault. */
async function select({ input, steps }: SelectRequest): Promise<SelectResult> {
  const compile = await loadPatterns()
  let value: unknown = input
  requireSize(value)
  for (const [at, selection] of steps.entries()) {
    value = selected(value, selection, { at, compile })
    // The same part may now be in it many times.
    if (selection.merge !== undefined || Array.isArray(selection.pick)) requireSize(value)
  }
  return { value }
}

interface Step {
  at: number
  compile: Compile
}

const at = (value: unknown, path: string): unknown => valueAt(value, valuePath(path)!)

function selected(value: unknown, selection: Selection, step: Step): unknown {
  const { path, filter, sort_by, descending = false, slice, merge, pick, flatten, unique_by, count } = selection
  const fault = (message: string) =>
    new Failure('invalid_value', `Step ${step.at + 1}: ${message}`, { param: `steps[${step.at}]` })
  const list = (what: string): unknown[] => {
    if (Array.isArray(value)) return value
    throw fault(`'${what}' needs a list, and the value is ${kindOf(value)}.`)
  }
  if (path !== undefined) {
    const found = at(value, path)
    if (found === undefined) throw fault(`there is no '${path}' in the value, which is ${kindOf(value)}.`)
    return found
  }
  if (filter !== undefined) return list('filter').filter(item => holds(filter, item, step.compile))
  if (sort_by !== undefined) return sorted(list('sort_by'), sort_by, descending)
  if (slice !== undefined) return list('slice').slice(slice[0], slice[1])
  if (Array.isArray(pick) && Array.isArray(value)) requireMembers(value, pick.length)
  if (pick !== undefined) return Array.isArray(value) ? value.map(item => picked(item, pick)) : picked(value, pick)
  if (flatten !== undefined) return flatten ? list('flatten').flat() : value
  if (unique_by !== undefined) return unique(list('unique_by'), unique_by)
  if (count !== undefined) return count ? list('count').length : value
  return merged(value, merge, fault)
}

/** Whether a condition holds for an item; not for one that cannot be tested in this way. What is missing counts as null. */
function holds({ path = '', not, ...test }: SelectCondition, item: unknown, compile: Compile): boolean {
  if (not !== undefined) return !holds(not, item, compile)
  try {
    return passes(at(item, path) ?? null, test, compile)
  } catch (thrown) {
    if (thrown instanceof ConditionFault) return false
    throw thrown
  }
}

/** Numbers before texts before all others, which keep their order; what is equal keeps its order too. */
function sorted(items: readonly unknown[], path: string, descending: boolean): unknown[] {
  const rank = (key: unknown) => (typeof key === 'number' ? 0 : typeof key === 'string' ? 1 : 2)
  const keyed = items.map(item => ({ item, key: at(item, path) }))
  const order = (a: unknown, b: unknown) =>
    rank(a) - rank(b) || (rank(a) === 2 || a === b ? 0 : (a as number) < (b as number) ? -1 : 1)
  keyed.sort((a, b) => (descending ? order(b.key, a.key) : order(a.key, b.key)))
  return keyed.map(({ item }) => item)
}

/** The members with these names, or the value at a path; null if there is none. */
const picked = (item: unknown, names: string | readonly string[]): unknown =>
  typeof names === 'string'
    ? (at(item, names) ?? null)
    : Object.fromEntries(names.map(name => [name, valueAt(item, [name]) ?? null]))

function unique(items: readonly unknown[], path: string): unknown[] {
  const seen = new Set<string>()
  return items.filter(item => {
    const key = JSON.stringify(at(item, path) ?? null)
    return !seen.has(key) && seen.add(key)
  })
}

function merged(value: unknown, other: unknown, fault: (message: string) => Failure): unknown {
  if (Array.isArray(value) && Array.isArray(other)) return [...value, ...other]
  if (isObject(value) && isObject(other)) return { ...value, ...other }
  if (Array.isArray(value) && value.every(isObject) && isObject(other)) {
    requireMembers(value, Object.keys(other).length)
    return value.map(item => ({ ...item, ...other }))
  }
  throw fault(
    `'merge' joins two lists or two objects, or adds members to each object of a list; the value is ${kindOf(value)} and 'merge' ${kindOf(other)}.`,
  )
}

/** Throws Failure `payload_too_large` if so many members of each item are too many. */
function requireMembers(items: readonly unknown[], members: number): void {
  if (items.length * members > maxValues) throw tooLarge(`more than ${maxValues} values`)
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'a list' : isObject(value) ? 'an object' : `a ${typeof value}`

/** The record of selecting from JSON. */
export const selectTask: StepTaskRecord = {
  ...stepTask,
  id: 'json/select',
  title: 'selection from JSON',
  description: 'Select, filter, sort and join parts of JSON, such as the results of other nodes. Needs no model.',
  sample: { input: { items: [{ n: 2 }, { n: 1 }] }, steps: [{ path: 'items' }, { sort_by: 'n' }] },
  request: SelectRequest,
  result: SelectResult,
  fill: inputs => parsed(SelectRequest, inputs),
  work: select,
}
