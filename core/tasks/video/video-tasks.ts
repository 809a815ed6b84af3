import { slugTask } from '../generation/slug-task.ts'
import type { GenerationTaskRecord } from '../task.ts'

/** The records of the tasks that make videos. */
export const videoTasks: readonly GenerationTaskRecord[] = [
  slugTask('slug/text-to-video', 'text to video', 'video'),
  slugTask('slug/image-to-video', 'image to video', 'video'),
  slugTask('slug/speech-to-video', 'speech to video', 'video'),
  slugTask('slug/video-interpolation', 'video interpolation', 'video'),
]
