import type { Argument, Command, Option } from 'commander'

/** The position of the cursor in a command line, and what is expected there. */
export interface CursorContext {
  /** The names of the command and its parents, without the program's name. */
  path: string[]
  command: Command
  /** The expected word: a value of an option, an argument, a command, an option, or nothing known. */
  expected: { option: Option } | { argument: Argument } | 'command' | 'option' | 'nothing'
  /** Values of the options before the cursor, by long flag. */
  given: ReadonlyMap<string, string>
  /** The arguments before the cursor. */
  positionals: readonly string[]
}

/** Finds the context after these words. `program` must contain the commands that the words name. */
export function cursorContextOf(program: Command, words: readonly string[], current: string): CursorContext {
  let command = program
  const path: string[] = []
  const given = new Map<string, string>()
  let pending: Option | undefined
  let optionsEnded = false
  const positionals: string[] = []

  for (const word of words) {
    if (pending) {
      given.set(pending.long ?? '', word)
      pending = undefined
    } else if (!optionsEnded && word === '--') optionsEnded = true
    else if (!optionsEnded && word.length > 1 && word.startsWith('-')) {
      const [flag = '', ...value] = word.split('=')
      const option = optionNamed(command, flag)
      const takesValue = option !== undefined && (option.required || option.optional)
      if (takesValue && value.length > 0) given.set(option.long ?? '', value.join('='))
      else {
        given.set(option?.long ?? flag, '')
        if (takesValue) pending = option
      }
    } else {
      const subcommand = positionals.length === 0 ? command.commands.find(one => one.name() === word) : undefined
      if (subcommand) {
        command = subcommand
        path.push(word)
      } else positionals.push(word)
    }
  }

  const expected = ((): CursorContext['expected'] => {
    if (pending) return { option: pending }
    if (!optionsEnded && current.startsWith('-')) {
      const option = current.includes('=') ? optionNamed(command, current.split('=')[0] ?? '') : undefined
      return option ? { option } : 'option'
    }
    if (command.commands.length > 0 && positionals.length === 0) return 'command'
    const { registeredArguments: known } = command
    const argument = known[positionals.length] ?? (known.at(-1)?.variadic ? known.at(-1) : undefined)
    return argument ? { argument } : 'nothing'
  })()
  return { path, command, expected, given, positionals }
}

const optionNamed = (command: Command, flag: string): Option | undefined =>
  command.options.find(option => option.long === flag || option.short === flag)
