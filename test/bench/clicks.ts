/**
 * Counts the clicks and keys of the main walks through the console, each from its first page: what a person does, without
 * the ways that would be shorter for somebody who knows them. `npx node test/bench/clicks.ts`. Prints a table.
 */
import { openConsole } from '../console/_console.ts'
import { go, walks } from '../console/_walks.ts'

await using console_ = await openConsole()
process.stdout.write('| role | task | clicks | keys | seconds |\n|---|---|---|---|---|\n')
for (const walk of walks) {
  await using opened = await console_.open('/', walk.signedOut ? { token: null } : {})
  if (walk.signedOut) opened.expectErrors(/401/)
  const { clicks, keys, seconds } = await go(walk, opened, console_)
  process.stdout.write(`| ${walk.role} | ${walk.task} | ${clicks} | ${keys} | ${seconds.toFixed(1)} |\n`)
}
