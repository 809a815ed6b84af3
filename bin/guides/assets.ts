import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../bundle.ts'
import { configurationMarkdown } from './configuration.ts'
import { listHtml, pageHtml } from './html.ts'
import { pageOf, readGuides } from './pages.ts'
import { pageText } from './text.ts'

const images = join(root, 'server/docs/images')

/** The pictures of the guides. */
export const imageAssets = (): { path: string; bytes: Uint8Array }[] =>
  readdirSync(images).map(name => ({ path: `docs/images/${name}`, bytes: readFileSync(join(images, name)) }))

/**
 * The documentation as assets: each page as HTML, each guide also as text for a terminal, and the list of guides that
 * `server/docs/guides.ts` reads. Rendered here, so that the program needs no markdown.
 */
export function documentationAssets(): { path: string; text: string }[] {
  const guides = readGuides()
  const list = guides.map(({ group, topic, title, summary }) => ({ group, topic, title, summary }))
  return [
    { path: 'docs/style.css', text: readFileSync(join(root, 'server/docs/style.css'), 'utf8') },
    { path: 'docs/guides.json', text: JSON.stringify(list) },
    { path: 'docs/guides.html', text: listHtml(guides) },
    ...guides.flatMap(guide => [
      { path: `docs/${guide.path}.html`, text: pageHtml(guide, guides) },
      { path: `docs/${guide.path}.txt`, text: pageText(guide) },
    ]),
    { path: 'docs/configuration.html', text: pageHtml(pageOf('configuration', configurationMarkdown()), guides) },
  ]
}
