import type { Schema } from '../../api/schema.ts'
import { kindOf, moderationsOf, rankingOf, scoresOf, textOf, vectorsOf } from '../../components/result/result-facts.ts'
import { modelsText } from '../../text/models.ts'

/** A short request that shows whether a model works. */
export interface TestRequest {
  path: string
  body: object
  /** Reads the answer as a sentence; null if the answer is audio. */
  read: ((answer: never) => string) | null
}

/** A short job, for tasks that take longer than a request: its result is shown as such. */
export interface TestJob {
  task: Task
  inputs: Record<string, unknown>
}

type Task = Schema<'Task'>
type TaskView = Schema<'TaskList'>['tasks'][number]
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 3 })

/** A second of nothing as a WAV file: eight bits, 8 kHz. */
function silence(): string {
  const rate = 8_000
  // The header in words of four bytes, the lowest first: the names are `RIFF`, `WAVE`, `fmt ` and `data`.
  const format = [16, 0x1_0001, rate, rate, 0x8_0001]
  const words = [0x46464952, 36 + rate, 0x45564157, 0x20746d66, ...format, 0x61746164, rate]
  const bytes = [...new Uint8Array(Uint32Array.from(words).buffer), ...new Uint8Array(rate).fill(128)]
  return `data:audio/wav;base64,${btoa(String.fromCharCode(...bytes))}`
}

/** Says in words what a model answered to a sample. */
function answerText(answer: object, sample: TestRequest['body']): string {
  const { documents = [] } = sample as { documents?: readonly string[] }
  const kind = kindOf(answer)
  if (kind === 'vectors') return modelsText.numbers(vectorsOf(answer)[0]?.length ?? 0)
  if (kind === 'scores') return modelsText.score(number.format(scoresOf(answer)[0] ?? 0))
  if (kind === 'judgements') return modelsText.flagged(moderationsOf(answer)[0]?.flagged ?? false)
  if (kind !== 'ranking') return textOf(answer)?.trim() || modelsText.emptyAnswer
  const [best] = rankingOf(answer, sample)
  return modelsText.best(documents[best?.index ?? 0]!, number.format(best?.score ?? 0))
}

/** Returns the sample of a task as a job; undefined if it needs a file that only the user has. */
function jobOf({ id, sample, media_fields }: TaskView): TestJob | undefined {
  const inputs = sample ?? (media_fields.includes('url') ? { url: silence() } : undefined)
  return inputs && { task: id, inputs }
}

/** Returns the request or job for the first task that has a short one; undefined for models that need a file. */
export function testRequest(
  { model_id: model, tasks }: Pick<Schema<'ModelStatus'>, 'model_id' | 'tasks'>,
  known: readonly TaskView[],
): TestRequest | TestJob | undefined {
  const own = tasks.flatMap((task: Task) => known.find(({ id }) => id === task) ?? [])
  const direct = own.find(
    ({ path, sample, category }) => path && sample && (category === 'text' || category === 'audio'),
  )
  if (direct) {
    const body = { model, ...direct.sample }
    return { path: direct.path!, body, read: direct.category === 'text' ? answer => answerText(answer, body) : null }
  }
  return own.map(jobOf).find(job => job !== undefined)
}
