import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { helpLast, openProgram } from '../../../cli/commands/program.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'

const terminal = openTerminal({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} })

/** The fault of a command line of infer, without its first word; undefined for a valid one. Runs nothing. */
export async function faultOf(args: readonly string[], topics: readonly string[]): Promise<string | undefined> {
  const words = helpLast(args)
  if (words[0] === 'help')
    return words[1] === undefined || topics.includes(words[1]) ? undefined : `there is no guide ${words[1]}`
  let command: CommandUnknownOpts = await openProgram(words, terminal)
  let positionals = 0
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    if (/^(--help|-h|--version|-V)$/.test(word)) continue
    if (word === '--') return undefined
    if (/^--?[a-z]/i.test(word)) {
      const [flag = '', value] = word.split(/=(.*)/s)
      const option = command.options.find(({ long, short }) => long === flag || short === flag)
      if (!option) return `${command.name()} has no option ${flag}`
      if (option.required && value === undefined) at++
      else if (option.optional && value === undefined && !/^-|^$/.test(words[at + 1] ?? '')) at++
      continue
    }
    if (command.commands.length > 0 && positionals === 0) {
      const below = command.commands.find(one => one.name() === word)
      if (!below) return `${command.name()} has no command ${word}`
      command = below
      continue
    }
    positionals++
  }
  const { registeredArguments: known } = command
  if (positionals > known.length && !known.at(-1)?.variadic)
    return `${command.name()} takes ${known.length} arguments, not ${positionals}`
  const required = known.filter(argument => argument.required).length
  return positionals < required && !words.includes('--help')
    ? `${command.name()} needs ${required} arguments`
    : undefined
}
