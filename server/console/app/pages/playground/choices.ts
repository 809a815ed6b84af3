import type { Schema } from '../../api/client.ts'

export type TaskChoice = Schema<'TaskList'>['tasks'][number]

/** A model with what the playground needs of it. */
export interface ModelChoice {
  id: string
  /** Paths under `/slug`, by task. */
  slugs: Readonly<Record<string, string>>
  /** Optional request features, by task. */
  features: Readonly<Record<string, readonly string[]>>
  /** Of its prices; empty if it costs nothing. */
  currency: string
}

export const modelChoice = ({ model_id, slugs, features, price }: Schema<'ModelStatus'>): ModelChoice => ({
  id: model_id,
  slugs,
  features,
  currency: price?.currency ?? '',
})

/** Tasks that a file is an input of, in the order in which people want them. */
const tasksFor: Readonly<Record<string, readonly [task: string, field: string][]>> = {
  image: [
    ['slug/image-to-image', 'image_url'],
    ['slug/image-to-video', 'image_url'],
    ['slug/inpainting', 'image_url'],
  ],
  video: [['slug/video-interpolation', 'video_url']],
  audio: [
    ['std/audio-transcription', 'url'],
    ['slug/speech-to-video', 'audio_url'],
  ],
}

/** Returns the first task that a model does and that takes such a file, and the field for it. */
export const taskForFile = (
  kind: string,
  tasks: readonly TaskChoice[],
): { task: TaskChoice; field: string } | undefined =>
  (tasksFor[kind] ?? [])
    .flatMap(([id, field]) => {
      const task = tasks.find(one => one.id === id && one.models.length > 0)
      return task ? [{ task, field }] : []
    })
    .at(0)
