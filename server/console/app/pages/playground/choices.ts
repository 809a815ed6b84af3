import type { Schema } from '../../api/client.ts'

export type TaskChoice = Schema<'TaskList'>['tasks'][number]

/**
 * What the playground needs of a model: its state, its paths under `/slug` and its optional request features, both by task, and the
 * currency of its prices, which is empty if it costs nothing.
 */
export const modelChoice = ({ model_id, status, slugs, features, price }: Schema<'ModelStatus'>) => ({
  id: model_id,
  status,
  slugs,
  features,
  currency: price?.currency ?? '',
})
export type ModelChoice = ReturnType<typeof modelChoice>

/** Fields for a file of each kind. */
const fieldsFor: Readonly<Record<string, readonly string[]>> = {
  image: ['image_url'],
  video: ['video_url'],
  audio: ['url', 'audio_url'],
}

/**
 * Returns the task that a model does, that takes such a file and needs the fewest others beside it, and the field for
 * the file.
 */
export const taskForFile = (
  kind: string,
  tasks: readonly TaskChoice[],
): { task: TaskChoice; field: string } | undefined =>
  tasks
    .flatMap(task => {
      const field = fieldsFor[kind]?.find(name => task.media_fields.includes(name))
      return field !== undefined && task.models.length > 0 ? [{ task, field }] : []
    })
    .toSorted((a, b) => needed(a.task) - needed(b.task))
    .at(0)

const needed = ({ media_fields, input_schema }: TaskChoice): number => {
  const required = (input_schema.required ?? []) as readonly string[]
  return media_fields.filter(name => required.includes(name)).length
}
