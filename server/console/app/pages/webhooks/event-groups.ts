/** Types of events that one pattern stands for. */
export interface EventGroup {
  /** `job.*` */
  pattern: string
  /** `job` */
  name: string
  types: readonly string[]
}

/** The pattern for all types. */
export const everything = '*'

/** The part of a type before its last word: `workflow_execution.node`. */
const groupOf = (type: string): string => type.slice(0, type.lastIndexOf('.'))

/** Types in groups, as they come. */
export const eventGroups = (types: readonly string[]): EventGroup[] =>
  [...Map.groupBy(types, groupOf)].map(([name, ofGroup]) => ({ name, pattern: `${name}.*`, types: ofGroup }))

/** Whether a chosen pattern, other than the type or pattern itself, stands for it. */
export const isCovered = (chosen: readonly string[], type: string): boolean =>
  chosen.some(one => one !== type && one.endsWith('*') && type.startsWith(one.slice(0, -1)))

/** Whether a type or pattern is chosen, itself or by a pattern that stands for it. */
export const isChosen = (chosen: readonly string[], type: string): boolean =>
  chosen.includes(type) || isCovered(chosen, type)

/** What is chosen after one more was ticked, or no longer; what a pattern stands for is chosen by the pattern alone. */
export function withChoice(chosen: readonly string[], type: string, isTicked: boolean): string[] {
  const others = chosen.filter(one => one !== type)
  return isTicked ? [...others.filter(one => !isCovered([type], one)), type] : others
}
