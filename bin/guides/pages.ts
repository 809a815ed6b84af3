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

/** Where a link of a page leads. */
type LinkTarget =
  | { kind: 'guide'; topic: string; anchor: string }
  | { kind: 'here'; anchor: string }
  | { kind: 'server'; path: string }
  | { kind: 'web'; url: string }

/**
 * Reads the address of a link: `jobs.md#cancel` another guide, `#cancel` this page, `/docs/configuration` another page
 * of the server, `https://…` the web. Throws for everything else, because it would lead nowhere on one of the surfaces.
 */
export function linkTarget(href: string): LinkTarget {
  const [, topic, anchor = ''] = /^(?:\.\/)?([a-z-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  if (topic !== undefined) return { kind: 'guide', topic, anchor }
  if (/^#[\w-]+$/.test(href)) return { kind: 'here', anchor: href }
  if (/^\/[\w/.#-]*$/.test(href)) return { kind: 'server', path: href }
  if (/^https?:\/\//.test(href)) return { kind: 'web', url: href }
  throw new Error(`A guide cannot link to '${href}': write jobs.md, #heading, /docs/… or https://…`)
}

/** The anchor of a heading, as GitHub makes it: `What is kept?` is `what-is-kept`. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

/** The name of a picture of the guides. Throws for one that the server would not have. */
export function imageName(href: string): string {
  const name = /^\.\.\/images\/([a-z-]+\.webp)$/.exec(href)?.[1]
  if (name === undefined)
    throw new Error(`A picture of a guide is in server/docs/images, as ../images/<name>.webp: ${href}`)
  return name
}
