import type { Schema } from '../api/schema.ts'

/** Names of the tasks for people. */
export const taskNames: Readonly<Record<Schema<'Task'>, string>> = {
  'std/chat-completion': 'Chat',
  'std/completion': 'Completion',
  'std/embeddings': 'Embeddings',
  'std/rerank': 'Rerank',
  'std/score': 'Score',
  'std/moderation': 'Moderation',
  'std/audio-speech': 'Speech',
  'std/audio-transcription': 'Transcription',
  'std/audio-translation': 'Audio translation',
  'std/image-generation': 'Image',
  'std/image-edit': 'Image edit',
  'slug/text-to-image': 'Text to image',
  'slug/image-to-image': 'Image to image',
  'slug/inpainting': 'Inpainting',
  'slug/text-to-video': 'Text to video',
  'slug/image-to-video': 'Image to video',
  'slug/speech-to-video': 'Speech to video',
  'slug/video-interpolation': 'Video interpolation',
}

export const tasksText = (tasks: readonly Schema<'Task'>[]): string => tasks.map(task => taskNames[task]).join(', ')
