import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tinyEmbed, tinyRerank } from './tiny-bert.ts'
import { tinyChat } from './tiny-chat.ts'

export { tinyChatRandom, tinyChatSentence } from './tiny-chat.ts'

/** The models that ship with the executable. Their bytes are the same on every build. */
export const tinyModels = {
  'tiny-chat.gguf': tinyChat,
  'tiny-embed.gguf': tinyEmbed,
  'tiny-rerank.gguf': tinyRerank,
}

/** Writes all of them into the folder, which is made where needed, and gives back their paths. */
export function writeTinyModels(folder: string): string[] {
  mkdirSync(folder, { recursive: true })
  return Object.entries(tinyModels).map(([name, make]) => {
    const path = join(folder, name)
    writeFileSync(path, make())
    return path
  })
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (!folder) throw new Error('Say which folder the models go to: node bin/tiny-models.ts <folder>')
  for (const path of writeTinyModels(folder)) process.stdout.write(`${path}\n`)
}
