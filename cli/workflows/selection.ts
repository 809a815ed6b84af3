import type { Dag, Parameters } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { type SelectedPart, type Selection, selectedPart } from '../../core/workflows/selection.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import { type GivenParameter, jsonValueOf } from './parameters.ts'

/** Reads an option that may be repeated. */
export const readTexts = (text: string, before: string[] = []): string[] => [...before, text]

/** Returns pinned results by node; undefined without any. Throws usage for one that is not JSON. */
export const pinsOf = (given: readonly GivenParameter[] | undefined): Record<string, unknown> | undefined =>
  given && Object.fromEntries(given.map(({ name, text }) => [name, jsonValueOf('--pin', name, text)]))

/** Returns the part of a workflow that runs. Throws usage for a selection that it cannot have. */
export function selectedOf(
  definition: { dag: Dag; parameters: Parameters | null },
  selection: Selection,
): SelectedPart {
  try {
    return selectedPart(definition, selection)
  } catch (thrown) {
    throw thrown instanceof Failure ? usageFailure(printable(thrown.message)) : thrown
  }
}
