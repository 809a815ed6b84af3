import { measures, type Usage } from '../../usage.ts'
import { columnOf } from './columns.ts'

/**
 * The columns of the measures: the same names in `jobs`, `executions` and `ledger`. Null where nothing is known, and in
 * rows written before the column existed.
 */
export const usageColumnNames = measures.map(columnOf)

/** The usage of a row as JSON text, for a SELECT: absent energy is unknown, any other absent measure is 0. */
export const usageJson = `json_object(${measures
  .map(measure => `'${measure}', ${measure === 'energyMj' ? 'energy_mj' : `coalesce(${columnOf(measure)}, 0)`}`)
  .join(', ')})`

/** `column = ?` of each column, for an UPDATE. */
export const usageSets = usageColumnNames.map(name => `${name} = ?`).join(', ')

/** The same where earlier attempts have set GPU time and energy already: both are added to. */
export const addingUsageSets = usageSets
  .replace('gpu_ms = ?', 'gpu_ms = coalesce(gpu_ms, 0) + ?')
  .replace('energy_mj = ?', 'energy_mj = ? + iif(gpu_ms IS NULL, 0, energy_mj)')

/**
 * The values of the columns: 0 for an absent measure, null for unknown energy. Written out, because every end of a job
 * needs them several times.
 */
export const usageValues = (usage: Usage): (number | null)[] => [
  usage.inputTokens,
  usage.cachedTokens ?? 0,
  usage.outputTokens,
  usage.reasoningTokens ?? 0,
  usage.images ?? 0,
  usage.videoMs ?? 0,
  usage.audioMs ?? 0,
  usage.characters ?? 0,
  usage.documents ?? 0,
  usage.gpuMs ?? 0,
  usage.energyMj ?? null,
]
