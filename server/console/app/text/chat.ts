import { named } from './named.ts'

/** Why a file cannot be sent. */
interface Refusal {
  refused: 'large' | 'audioFormat' | 'noText' | 'empty'
  /** Of a file that is too large. */
  kind?: keyof typeof refusedTexts.large
}

const refusedTexts = {
  large: {
    image: 'is larger than 10 MB. Make the image smaller.',
    audio: 'is larger than 25 MB. Cut the audio, or save it as MP3.',
    text: 'is larger than 1 MB, the most of a text. Send a part of it.',
  },
  audioFormat: 'is audio or video that models do not take. Save the audio as WAV or MP3.',
  noText:
    'is neither an image nor audio, and has no text in UTF-8. Save its text as a file, or copy it into the message.',
  empty: 'is empty.',
} as const

/** Texts of the page Chat, and of answers that are shown elsewhere. */
export const chatText = {
  ...named('conversation', 'conversations', 'message', 'send', 'stop', 'you', 'reasoning', 'sendResult'),
  ...named('model', 'rename', 'delete', 'undo', 'settings', 'save'),
  title: 'New conversation',
  untitled: 'Without a title',
  begin: 'New conversation',
  search: 'Search conversations',
  showList: 'Show conversations',
  hideList: 'Hide conversations',
  none: 'No conversation yet',
  noneFound: 'No conversation has these words',
  onServer: 'Conversations are kept on this server; only you can read them. Their files belong to the organization.',
  inBrowser: (organization: string) =>
    `Conversations are kept in this browser until you sign out, because the organization “${organization}” does not store the content of calls.`,
  alsoInBrowser: 'Those marked “browser” are kept in this browser until you sign out.',
  alsoOnServer: 'Those marked “server” were kept on the server before.',
  places: { server: 'server', browser: 'browser' },
  gone: 'There is no such conversation any more. It was deleted, or the browser needed its room.',
  tooLong: 'This conversation is too long for this browser to keep. Download it, and begin another one.',
  noRoom: 'This browser has no room to keep the conversation. Download it, or delete others.',
  notKept: (why: string) => `The conversation is not kept: ${why}`,
  keepAgain: 'Try again',
  nameLabel: 'Title',
  renamed: 'The conversation was renamed.',
  deleted: (title: string) => `“${title}” was deleted.`,
  download: 'Download as Markdown',
  showSettings: 'Settings and code',
  hideSettings: 'Close settings',
  noModels: 'No model for a chat is ready',
  noModelsHint: 'Add one on the page Models, or ask an administrator which models your token may use.',
  toModels: 'Go to Models',
  compareWith: (at: number) => `Compare with ${at}`,
  compare: 'Compare',
  stopComparing: (model: string) => `Do not compare with ${model}`,
  goOn: 'Continue with this answer',
  goesOn: 'The conversation continues with this answer',
  inputsGone: 'The inputs of this request were not kept. Only its model is chosen.',

  system: 'System prompt',
  systemHint: 'What the model is told before the conversation.',
  parameters: 'Parameters and tools',
  example: 'Hello, who are you?',
  regenerate: (model: string) => `Answer again with ${model}`,
  edit: 'Edit message',
  endEdit: 'Do not edit',
  sendEdited: 'Send as another version',
  versions: (at: number, of: number) => `${at} of ${of}`,
  before: 'Version before',
  after: 'Version after',
  empty: 'Write a message to begin.',
  tool: 'Tool result',
  attach: 'Add files: images up to 10 MB, audio (WAV, MP3) up to 25 MB, text up to 1 MB',
  addedFiles: 'Files of the message',
  attached: (name: string) => `File of the message: ${name || 'image'}`,
  removeFile: (name: string) => `Remove ${name}`,
  downloadFile: 'Download the file',
  uploading: 'Is stored …',
  fileGone: (name: string) => `The file ${name} was deleted.`,
  notTaken: {
    image: 'A chosen model takes no images. Choose another model, or send text.',
    audio: 'A chosen model takes no audio. Choose another model, or send text.',
  },
  tooMany: (most: number) => `A message has ${most} files at most.`,
  notStored: (name: string, why: string) => `“${name}” was not stored: ${why}`,
  refused: (name: string, { refused, kind }: Refusal): string =>
    `“${name}” ${kind ? refusedTexts.large[kind] : refusedTexts[refused as Exclude<typeof refused, 'large'>]}`,
  stopped: 'Stopped.',
  noAnswer: 'The model ended its answer without a text.',
  calls: (name: string) => `Calls ${name}`,
  toolResult: (name: string) => `Result of ${name}`,
  waiting: 'Waiting for the model …',
  copy: 'Copy answer',
  first: (time: string) => `first text after ${time}`,
  speed: (tokens: string) => `${tokens} tokens/s`,
  enter: 'Enter sends, Shift and Enter begins a new line.',
  code: 'Code',
  codeIn: (language: string) => `Code: ${language}`,
  table: 'Table',
  done: 'Done',
  toDo: 'To do',
} as const
