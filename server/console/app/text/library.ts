import { named } from './named.ts'

/** Texts of the library. */
export const libraryText = {
  ...named('kind', 'model', 'allModels', 'prompt', 'seed', 'made', 'size', 'length', 'job', 'download', 'delete'),
  about: 'Images, videos and audio that your organization has made.',
  search: 'Search in prompts',
  kinds: { '': 'All kinds', image: 'Images', video: 'Videos', audio: 'Audio' },
  list: 'Files',
  empty: 'Nothing has been made yet',
  emptyHint: 'Images, videos and audio appear here as soon as a job has made them.',
  notFound: 'Nothing matches',
  notFoundHint: 'Try other words, or another kind.',
  toPlayground: 'Open the playground',
  /** Read aloud before the prompt. */
  open: (kind: string) => `Open ${kind}:`,
  kindNames: { image: 'image', video: 'video', audio: 'audio' },
  noPrompt: 'without a prompt',
  expires: 'Kept until',
  forever: 'It is deleted by you',
  frames: (frames: string, fps: string) => `${frames} frames at ${fps} per second`,
  reuse: 'Use as input',
  repeat: 'Repeat with changes',
  deleteTitle: 'Delete file',
  deleteSentence: 'The file is deleted for everybody in your organization. The job that made it stays.',
  deleted: 'The file is deleted.',
  gone: 'This file is not in the library. It may have been deleted, or its time is over.',
} as const
