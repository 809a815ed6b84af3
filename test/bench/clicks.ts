/**
 * Counts the clicks and keys of the main walks through the console, and of the tasks that RESULTS.md compares with other
 * programs, each from its first page: what a person does, without the ways that would be shorter for somebody who knows them.
 * `npx node test/bench/clicks.ts`. Prints a table of each.
 */
import { join } from 'node:path'
import { openConsole } from '../console/_console.ts'
import { go, type Walk, walks } from '../console/_walks.ts'
import { compared } from './_compared.ts'

const chat = (id: string) => ({
  id,
  source: join(import.meta.dirname, '../../dist/assets/models/tiny-chat.gguf'),
  tasks: ['std/chat-completion'],
  context_length: 2048,
})
await using console_ = await openConsole({ models: [chat('infer/tiny-chat'), chat('writer')], toys: true })

const counts = new Map<Walk, { clicks: number; keys: number; seconds: number }>()
for (const walk of new Set([...walks, ...compared])) {
  await using opened = await console_.open('/', walk.signedOut ? { token: null } : {})
  if (walk.signedOut) opened.expectErrors(/401/)
  counts.set(walk, await go(walk, opened, console_))
}

const write = (line: string) => process.stdout.write(`${line}\n`)
write('| role | task | clicks | keys | seconds |\n|---|---|---|---|---|')
for (const walk of walks) {
  const { clicks, keys, seconds } = counts.get(walk)!
  write(`| ${walk.role} | ${walk.task} | ${clicks} | ${keys} | ${seconds.toFixed(1)} |`)
}
write('\n| task | clicks + keys |\n|---|---|')
for (const walk of compared) {
  const { clicks, keys } = counts.get(walk)!
  write(`| ${walk.task} | ${clicks} + ${keys} |`)
}
