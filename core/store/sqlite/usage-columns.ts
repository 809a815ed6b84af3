import { type Measure, measures, type Usage } from '../../usage.ts'

/** The column of each measure: the same names in `jobs`, `executions` and `ledger`. */
const columnOf: Record<Measure, string> = {
  inputTokens: 'input_tokens',
  cachedTokens: 'cached_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
  images: 'images',
  videoMs: 'video_ms',
  audioMs: 'audio_ms',
  characters: 'characters',
  documents: 'documents',
  gpuMs: 'gpu_ms',
  energyMj: 'energy_mj',
}

/** The columns of a usage in a row; null where nothing is known, and in rows written before the column existed. */
export type UsageRow = Record<`${'input' | 'cached' | 'output' | 'reasoning'}_tokens`, number | null> &
  Record<'images' | 'video_ms' | 'audio_ms' | 'characters' | 'documents' | 'gpu_ms' | 'energy_mj', number | null>

/** The names of the columns, in the order of `measures`. */
export const usageColumnNames = measures.map(measure => columnOf[measure])

/** The columns as a list for SQL. */
export const usageColumns = usageColumnNames.join(', ')

/** `column = ?` of each column, for an UPDATE. */
export const usageSets = usageColumnNames.map(name => `${name} = ?`).join(', ')

/** The same where earlier attempts have set GPU time and energy already: both are added to. */
export const addingUsageSets = usageColumnNames
  .map(name => {
    if (name === 'gpu_ms') return 'gpu_ms = coalesce(gpu_ms, 0) + ?'
    return name === 'energy_mj' ? 'energy_mj = ? + iif(gpu_ms IS NULL, 0, energy_mj)' : `${name} = ?`
  })
  .join(', ')

/** The values of the columns: 0 for an absent measure, null for unknown energy. */
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

/** The usage of a row. */
export const usageOfRow = (row: UsageRow): Usage => ({
  inputTokens: row.input_tokens ?? 0,
  cachedTokens: row.cached_tokens ?? 0,
  outputTokens: row.output_tokens ?? 0,
  reasoningTokens: row.reasoning_tokens ?? 0,
  images: row.images ?? 0,
  videoMs: row.video_ms ?? 0,
  audioMs: row.audio_ms ?? 0,
  characters: row.characters ?? 0,
  documents: row.documents ?? 0,
  gpuMs: row.gpu_ms ?? 0,
  energyMj: row.energy_mj,
})
