import type { Argument, Command, Option } from 'commander'

/** Where the cursor stands in a command line, and so what may come there. */
export interface CursorContext {
  /** The names of the commands that lead here, without the program's own. */
  path: string[]
  command: Command
  /** What is being given: a value of an option, an argument, a command or an option, or nothing that is known. */
  wanted: { option: Option } | { argument: Argument } | 'command' | 'option' | 'nothing'
  /** Values of options that stand before, by their long flag. */
  given: ReadonlyMap<string, string>
  /** The arguments that stand before. */
  positionals: readonly string[]
}

/** Finds the place behind the words, walking down the commands. `program` knows the commands that the words name. */
export function cursorContextOf(program: Command, words: readonly string[], current: string): CursorContext {
  let command = program
  const path: string[] = []
  const given = new Map<string, string>()
  let pending: Option | undefined
  let ended = false
  const positionals: string[] = []

  for (const word of words) {
    if (pending) {
      given.set(pending.long ?? '', word)
      pending = undefined
    } else if (!ended && word === '--') ended = true
    else if (!ended && word.length > 1 && word.startsWith('-')) {
      const [flag = '', ...value] = word.split('=')
      const option = optionNamed(command, flag)
      const takes = option !== undefined && (option.required || option.optional)
      if (takes && value.length > 0) given.set(option.long ?? '', value.join('='))
      else {
        given.set(option?.long ?? flag, '')
        if (takes) pending = option
      }
    } else {
      const below = positionals.length === 0 ? command.commands.find(one => one.name() === word) : undefined
      if (below) {
        command = below
        path.push(word)
      } else positionals.push(word)
    }
  }

  const wanted = ((): CursorContext['wanted'] => {
    if (pending) return { option: pending }
    if (!ended && current.startsWith('-')) {
      const option = current.includes('=') ? optionNamed(command, current.split('=')[0] ?? '') : undefined
      return option ? { option } : 'option'
    }
    if (command.commands.length > 0 && positionals.length === 0) return 'command'
    const { registeredArguments: known } = command
    const argument = known[positionals.length] ?? (known.at(-1)?.variadic ? known.at(-1) : undefined)
    return argument ? { argument } : 'nothing'
  })()
  return { path, command, wanted, given, positionals }
}

const optionNamed = (command: Command, flag: string): Option | undefined =>
  command.options.find(option => option.long === flag || option.short === flag)
