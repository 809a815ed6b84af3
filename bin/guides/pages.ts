import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lexer, type Tokens } from 'marked'
import { root } from '../bundle.ts'
import { topicGroups } from './topics.ts'

/** The folder of the guides' texts. */
export const guidesFolder = join(root, 'server/docs/guides')

/** A page of the documentation, as it is written. */
export interface GuidePage {
  /** Below `/docs/`, without a slash at either end: `guides/jobs`. */
  path: string
  /** The text of its first heading. */
  title: string
  /** What follows the first heading, as markdown. */
  body: string
}

export interface Guide extends GuidePage {
  group: string
  topic: string
  summary: string
}

/**
 * Makes a page of markdown. Throws where the first line is not a heading of the first level, or where there is HTML,
 * which a terminal could not show.
 */
export function pageOf(path: string, markdown: string): GuidePage {
  const [, title, body] = /^# (.+)\n([^]*)$/.exec(markdown) ?? []
  if (title === undefined || body === undefined) throw new Error(`${path}: the first line must be '# ' and a title.`)
  const html = lexer(body).find((token): token is Tokens.HTML => token.type === 'html')
  if (html) throw new Error(`${path}: write no HTML, a terminal cannot show it: ${html.raw.slice(0, 60)}`)
  return { path, title, body }
}

/** All guides that are written, in the order of the lists. Throws for a file that the list of topics does not have. */
export function readGuides(folder = guidesFolder): Guide[] {
  const known = topicGroups.flatMap(({ group, topics }) => topics.map(topic => ({ group, ...topic })))
  const unknown = readdirSync(folder).filter(
    file => file.endsWith('.md') && !known.some(({ topic }) => `${topic}.md` === file),
  )
  if (unknown.length > 0) throw new Error(`List these guides in bin/guides/topics.ts: ${unknown.join(', ')}`)
  return known
    .filter(({ topic }) => existsSync(join(folder, `${topic}.md`)))
    .map(about => ({
      ...about,
      ...pageOf(`guides/${about.topic}`, readFileSync(join(folder, `${about.topic}.md`), 'utf8')),
    }))
}
