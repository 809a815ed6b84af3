/** What a line typed in the chat means. */
export type Meaning =
  | { does: 'nothing' | 'clear' | 'help' | 'leave' }
  /** Without an id the current model and the offered ones are shown. */
  | { does: 'model'; id: string | undefined }
  /** Without a text the current instruction is shown; `-` takes it away. */
  | { does: 'system'; text: string | undefined }
  | { does: 'unknown'; word: string }
  | { does: 'say'; text: string }

/** Reads one line. A slash begins a command; two slashes say something that begins with one. */
export function meaningOf(line: string): Meaning {
  const text = line.trim()
  if (text === '') return { does: 'nothing' }
  if (text.startsWith('//')) return { does: 'say', text: text.slice(1) }
  if (!text.startsWith('/')) return { does: 'say', text }
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
    default:
      return { does: 'unknown', word }
  }
}

/** What `/help` prints. */
export const helpText = [
  '/model [id]      show the models, or go on with another one',
  '/system [text]   show the instruction, or set it; /system - takes it away',
  '/clear           forget what was said',
  '/exit            leave, as does Ctrl-D',
  'Ctrl-C           stop the answer',
  '\\ at the end     the message goes on in the next line',
].join('\n')

/** Puts lines that end with a backslash together with what follows them. */
export function openLines() {
  let held = ''
  return {
    /** The whole message, or undefined while it goes on. */
    take(line: string): string | undefined {
      if (line.endsWith('\\')) {
        held += `${line.slice(0, -1)}\n`
        return undefined
      }
      const whole = held + line
      held = ''
      return whole
    },
    forget(): void {
      held = ''
    },
    isOpen: (): boolean => held !== '',
  }
}
