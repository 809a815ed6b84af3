/**
 * The simple commands of a shell script, each as its words without quotes. Commands inside `$(…)`, `<(…)`, pipes, lists
 * and functions are separate commands; the text of here-documents and comments is omitted.
 */
export function shellCommands(script: string): string[][] {
  const commands: string[][] = []
  parse(script, 0, undefined, commands)
  return commands.map(withoutPrefix).filter(words => words.length > 0)
}

/** Words that may precede a command. */
const prefix = /^(?:[A-Za-z_]\w*=.*|!|\{|\}|\(|if|then|else|elif|fi|while|until|do|done|time|exec|nohup|env)$/s

function withoutPrefix(words: readonly string[]): string[] {
  let at = 0
  for (;;) {
    if (words[at] === 'sudo') {
      at++
      while (words[at]?.startsWith('-')) at += /^-[ugE]$/.test(words[at]!) && words[at] !== '-E' ? 2 : 1
    } else if (prefix.test(words[at] ?? 'x')) at++
    else return words.slice(at)
  }
}

/** Reads up to the `end` character and returns the position after it. */
function parse(text: string, start: number, end: string | undefined, commands: string[][]): number {
  let words: string[] = []
  let word: string | undefined
  let heredoc: string | undefined
  const endWord = () => {
    if (word !== undefined) words.push(word)
    word = undefined
  }
  const endCommand = () => {
    endWord()
    if (words.length > 0) commands.push(words)
    words = []
  }
  let at = start
  while (at < text.length) {
    const sign = text[at]!
    if (sign === end) {
      endCommand()
      return at + 1
    }
    if (sign === '\\' && text[at + 1] === '\n') at += 2
    else if (sign === '\\') {
      word = (word ?? '') + (text[at + 1] ?? '')
      at += 2
    } else if (sign === "'") {
      const close = text.indexOf("'", at + 1)
      word = (word ?? '') + text.slice(at + 1, close)
      at = close + 1
    } else if (sign === '"') {
      const [inside, next] = quoted(text, at + 1, commands)
      word = (word ?? '') + inside
      at = next
    } else if ((sign === '$' || sign === '<' || sign === '>') && text[at + 1] === '(') {
      const next = parse(text, at + 2, ')', commands)
      word = (word ?? '') + text.slice(at, next)
      at = next
    } else if (sign === '#' && word === undefined) at = endOfLine(text, at)
    else if (sign === '<' && text[at + 1] === '<') {
      endWord()
      const [whole, mark] = /^<<-?\s*['"]?(\w+)['"]?/.exec(text.slice(at)) ?? ['<<', '']
      heredoc = mark
      at += whole.length
    } else if (sign === '\n') {
      endCommand()
      at++
      if (heredoc !== undefined) {
        const close = new RegExp(`^\\s*${heredoc}$`, 'm').exec(text.slice(at))
        at = close ? at + close.index + close[0].length : text.length
        heredoc = undefined
      }
    } else if (/[|;&]/.test(sign) && !(sign === '&' && text[at - 1] === '>')) {
      endCommand()
      at++
    } else if (/[<>]/.test(sign)) {
      // A redirection: the number before it and the file after it are not words of the command.
      if (/^\d$/.test(word ?? '')) word = undefined
      endWord()
      const [whole] = /^[<>]+&?\s*(?:'[^']*'|"[^"]*"|[^\s|;&()]*)/.exec(text.slice(at))!
      at += whole.length
    } else if (/\s/.test(sign)) {
      endWord()
      at++
    } else {
      word = (word ?? '') + sign
      at++
    }
  }
  endCommand()
  return at
}

/** A text in double quotes and the position after it. */
function quoted(text: string, start: number, commands: string[][]): [inside: string, next: number] {
  let inside = ''
  let at = start
  while (at < text.length && text[at] !== '"') {
    if (text[at] === '\\') {
      inside += text[at + 1] ?? ''
      at += 2
    } else if (text[at] === '$' && text[at + 1] === '(') {
      const next = parse(text, at + 2, ')', commands)
      inside += text.slice(at, next)
      at = next
    } else inside += text[at++]
  }
  return [inside, at + 1]
}

const endOfLine = (text: string, at: number): number => {
  const next = text.indexOf('\n', at)
  return next < 0 ? text.length : next
}
