/** What a line typed in the chat means. */
export type ChatInput =
  | { does: 'nothing' | 'clear' | 'help' | 'leave' }
  /** Without an id the current model and the offered ones are shown. */
  | { does: 'model'; id: string | undefined }
  /** Without a text the current instruction is shown; `-` takes it away. */
  | { does: 'system'; text: string | undefined }
  /** A file or address; undefined where it is missing. */
  | { does: 'image' | 'file' | 'save'; path: string | undefined }
  | { does: 'unknown'; word: string }
  | { does: 'say'; text: string }

/** Every command that `/help` lists, in its first spelling. */
export const commandNames = ['/clear', '/exit', '/file', '/help', '/image', '/model', '/save', '/system'] as const

/**
 * Reads one message. A slash begins a command, two slashes a message that begins with one. Several lines are a message,
 * unless they are an instruction: pasted paths and logs begin with slashes too.
 */
export function parseChatInput(line: string): ChatInput {
  const text = line.trim()
  if (text === '') return { does: 'nothing' }
  if (text.startsWith('//')) return { does: 'say', text: text.slice(1) }
  if (!text.startsWith('/')) return { does: 'say', text }
  if (text.includes('\n') && !/^\/system\s/.test(text)) return { does: 'say', text }
  const [word = '', ...rest] = text.split(/\s+/)
  const argument = rest.length > 0 ? text.slice(word.length).trim() : undefined
  switch (word) {
    case '/clear':
      return { does: 'clear' }
    case '/help':
    case '/?':
      return { does: 'help' }
    case '/exit':
    case '/quit':
    case '/bye':
      return { does: 'leave' }
    case '/model':
      return { does: 'model', id: argument }
    case '/system':
      return { does: 'system', text: argument }
    case '/image':
    case '/file':
    case '/save':
      return { does: word.slice(1) as 'image' | 'file' | 'save', path: argument }
    default:
      return { does: 'unknown', word }
  }
}

/** What `/help` prints. */
export const helpText = [
  '/model [id]      show the models, or go on with another one',
  '/system [text]   show the instruction, or set it; /system - takes it away',
  '/image <file>    send an image, or its address, with the next message',
  '/file <file>     send a text file with the next message',
  '/save <file>     write the conversation to a new file, .md or .json',
  '/clear           forget what was said',
  '/exit            leave, as does Ctrl-D',
  'Ctrl-C           stop the answer',
  'Tab              complete a command, a model or a path',
  '"""              begin and end a message of several lines',
  '\\ at the end     the message goes on in the next line',
].join('\n')
