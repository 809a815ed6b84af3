import { Failure } from '../failure.ts'
import type { Model } from '../models/model.ts'
import { firstOf, type PredictionInput, type PredictionMedia, type TaskPrediction } from './prediction.ts'
import { taskRecord } from './registry.ts'
import type { TaskRecord } from './task.ts'

/** The names under which models at Replicate take media. */
const mediaNames: Record<PredictionMedia, readonly string[]> = {
  mask: ['mask', 'mask_url', 'mask_image_url'],
  image: ['image', 'image_url', 'input_image', 'input_image_url', 'image_urls'],
  video: ['video', 'video_url', 'input_video_url'],
  audio: ['audio', 'audio_url', 'input_audio_url'],
}

/**
 * Returns the record of the model's task that uses most of the media in the input, and of several the one that lacks
 * fewest. Models at Replicate have one task each, and requests do not name it. Throws Failure `unsupported_task`.
 */
export function predictionTask(
  { id, tasks }: Pick<Model, 'id' | 'tasks'>,
  input: PredictionInput,
): TaskRecord & { prediction: TaskPrediction } {
  const given = (kind: PredictionMedia) => firstOf(input, ...mediaNames[kind]) != null
  const [best] = tasks
    .map(task => taskRecord(task))
    .flatMap(record => {
      const { prediction } = record
      if (!prediction) return []
      const used = prediction.media.filter(given).length
      return [{ record: { ...record, prediction }, used, lacking: prediction.media.length - used }]
    })
    .toSorted((one, other) => other.used - one.used || one.lacking - other.lacking)
  if (best) return best.record
  throw new Failure(
    'unsupported_task',
    `The model '${id}' has no task that predictions run. Send the request to its own endpoint.`,
  )
}
