import { slugTask } from '../generation/slug-task.ts'
import type { GenerationTaskRecord } from '../task.ts'
import { sampleImage } from '../task-test.ts'

/** The records of the tasks that make videos. */
export const videoTasks: readonly GenerationTaskRecord[] = [
  slugTask('slug/text-to-video', {
    title: 'text to video',
    description: 'Generate a video from a prompt. Takes minutes; returns a video file.',
    sample: { prompt: sampleImage, preset: 'fast_draft' },
  }),
  slugTask('slug/image-to-video', {
    title: 'image to video',
    description: 'Animate an image by a prompt. Takes minutes; returns a video file.',
  }),
  slugTask('slug/speech-to-video', {
    title: 'speech to video',
    description: 'Animate an image to speech. Takes minutes; returns a video file.',
  }),
  slugTask('slug/video-interpolation', {
    title: 'video interpolation',
    description: 'Add frames between those of a video. Returns a video file.',
  }),
]
