import { Marked, type Tokens } from 'marked'
import { anchorOf, type Guide, type GuidePage, imageName, linkTarget } from './pages.ts'

/** Text as HTML. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** Languages in which `#` begins a comment. */
const hashComments = /^(sh|bash|yaml|python|nginx|caddyfile|toml|ini|promql)$/

/** Code as HTML, comments apart. */
export function codeHtml(text: string, language: string): string {
  if (!hashComments.test(language)) return escaped(text)
  return text
    .split('\n')
    .map(line => {
      const [, before, comment] = /^(.*?(?:^|\s))(#\s.*)$/.exec(line) ?? []
      return comment === undefined ? escaped(line) : `${escaped(before!)}<i>${escaped(comment)}</i>`
    })
    .join('\n')
}

function hrefOf(href: string): string {
  const target = linkTarget(href)
  if (target.kind === 'guide') return `/docs/guides/${target.topic}${target.anchor}`
  return target.kind === 'here' ? target.anchor : target.kind === 'server' ? target.path : target.url
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }: Tokens.Heading): string {
      const anchor = anchorOf(text.replaceAll('`', ''))
      const inside = this.parser.parseInline(tokens)
      return `<h${depth} id="${anchor}">${inside} <a class="anchor" href="#${anchor}" aria-label="Link to this section">#</a></h${depth}>\n`
    },
    code({ text, lang = '' }: Tokens.Code): string {
      return `<pre tabindex="0"><code>${codeHtml(text, lang.split(' ')[0]!)}</code></pre>\n`
    },
    image({ href, text }: Tokens.Image): string {
      return `<img src="/docs/images/${escaped(imageName(href))}" alt="${escaped(text)}" loading="lazy">`
    },
    link({ href, tokens }: Tokens.Link): string {
      return `<a href="${escaped(hrefOf(href))}">${this.parser.parseInline(tokens)}</a>`
    },
    table(token: Tokens.Table): string {
      const row = (cells: Tokens.TableCell[], tag: string) =>
        `<tr>${cells.map(cell => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>\n`
      const body = token.rows.map(cells => row(cells, 'td')).join('')
      return `<div class="table" tabindex="0"><table>\n<thead>${row(token.header, 'th')}</thead>\n<tbody>${body}</tbody>\n</table></div>\n`
    },
  },
})

/** The markdown of a page as HTML, without the page around it. */
export const bodyHtml = (markdown: string): string => marked.parse(markdown, { async: false })

/** A whole page of the documentation. It loads its style from this server and nothing else. */
export function pageHtml({ path, title, body }: GuidePage, guides: readonly Guide[]): string {
  const at = guides.findIndex(guide => guide.path === path)
  const beside = [guides[at - 1], guides[at + 1]].map((guide, side) =>
    at < 0 || !guide
      ? ''
      : `<a href="/docs/${guide.path}">${side === 0 ? '← ' : ''}${escaped(guide.title)}${side === 1 ? ' →' : ''}</a>`,
  )
  return shell(title, path, guides, [
    `<h1>${escaped(title)}</h1>`,
    bodyHtml(body),
    ...(beside.some(Boolean)
      ? [`<nav class="beside">${beside.map(link => `<span>${link}</span>`).join('')}</nav>`]
      : []),
  ])
}

/** The list of all guides. */
export function listHtml(guides: readonly Guide[]): string {
  return shell('Guides', 'guides', guides, [
    '<h1>Guides</h1>',
    '<p>Each is one page. In a terminal: <code>infer help &lt;topic&gt;</code></p>',
    ...byGroup(guides).map(([group, own]) => {
      const rows = own.map(
        ({ path, title, summary }) =>
          `<dt><a href="/docs/${path}">${escaped(title)}</a></dt><dd>${escaped(summary)}</dd>`,
      )
      return `<h2>${escaped(group)}</h2>\n<dl>${rows.join('\n')}</dl>`
    }),
  ])
}

const shell = (
  title: string,
  path: string,
  guides: readonly Guide[],
  main: readonly string[],
): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · infer</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header><b>infer</b><nav>${Object.entries({
  '/docs': 'API reference',
  '/docs/guides': 'Guides',
  '/docs/configuration': 'Configuration',
})
  .map(([to, text]) => linkHtml(to, text, path))
  .join('')}</nav></header>
<div class="columns">
<nav class="topics" aria-label="Guides">
${topicsHtml(path, guides)}
</nav>
<main>
${main.join('\n')}
</main>
</div>
</body>
</html>
`

const topicsHtml = (path: string, guides: readonly Guide[]): string =>
  byGroup(guides)
    .map(([group, own]) => {
      const rows = own.map(guide => `<li>${linkHtml(`/docs/${guide.path}`, guide.title, path)}</li>`)
      return `<b>${escaped(group)}</b>\n<ul>${rows.join('')}</ul>`
    })
    .join('\n')

const byGroup = (guides: readonly Guide[]) => [...Map.groupBy(guides, ({ group }) => group)]

/** A link of the page at a path, which says whether it leads to that page. */
const linkHtml = (to: string, text: string, path: string): string =>
  `<a href="${to}"${to === `/docs/${path}` ? ' aria-current="page"' : ''}>${escaped(text)}</a>`
