import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripAnsi } from 'consola/utils'
import { lexer, type Token, walkTokens } from 'marked'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bodyHtml, codeHtml, listHtml, pageHtml } from '../../../bin/guides/html.ts'
import { anchorOf, type Guide, linkTarget, pageOf, readGuides } from '../../../bin/guides/pages.ts'
import { pageText } from '../../../bin/guides/text.ts'
import { topicGroups } from '../../../bin/guides/topics.ts'
import { entries } from '../../../cli/commands/program.ts'
import { guideOf } from '../../../cli/help/manual.ts'

const guides = readGuides()
const topics = topicGroups.flatMap(group => group.topics)
const text = (markdown: string) => stripAnsi(pageText(pageOf('guides/a', `# Title\n\n${markdown}`)))
const anchorsOf = (markdown: string) => {
  const found = new Set<string>()
  void walkTokens(lexer(markdown), (token: Token) => {
    if (token.type === 'heading') found.add(anchorOf((token.text as string).replaceAll('`', '')))
  })
  return found
}

describe('the list of topics', () => {
  test('each topic has a page', () => {
    expect(guides.map(({ topic }) => topic)).toEqual(topics.map(({ topic }) => topic))
  })

  test('no topic has the name of a command, whose help would be printed instead', () => {
    const commands = new Set(entries.map(({ name }) => name))
    expect(topics.filter(({ topic }) => commands.has(topic))).toEqual([])
  })

  test('the help of commands names existing topics', () => {
    const commands = new Set(entries.map(({ name }) => name))
    for (const [command, guide] of Object.entries(guideOf)) {
      expect(commands).toContain(command)
      expect(topics.map(({ topic }) => topic)).toContain(guide)
    }
  })

  test('each topic has one short line', () => {
    for (const { summary } of topics) expect(summary).toMatch(/^\S.{8,55}$/)
  })

  test('a missing file is refused', () => {
    const folder = mkdtempSync(join(tmpdir(), 'infer-guides-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'jobs.md'), '# Jobs\n\nText.\n')
    expect(readGuides(folder)).toMatchObject([{ topic: 'jobs', title: 'Jobs', body: '\nText.\n', group: 'Use' }])
    writeFileSync(join(folder, 'other.md'), '# Other\n')
    expect(() => readGuides(folder)).toThrow('topics.ts: other.md')
  })
})

describe.each(guides)('$topic', guide => {
  test('is one page of at most 200 lines', () => {
    expect(guide.body.split('\n').length).toBeLessThanOrEqual(200)
  })

  test('fits 80 columns in a terminal', () => {
    expect(
      stripAnsi(pageText(guide))
        .split('\n')
        .filter(line => line.length > 80),
    ).toEqual([])
  })

  test('every link leads to a guide, a heading, a page of the server, or the web', () => {
    const broken: string[] = []
    void walkTokens(lexer(guide.body), (token: Token) => {
      if (token.type !== 'link') return
      const target = linkTarget(token.href as string)
      if (target.kind === 'guide' && !topics.some(({ topic }) => topic === target.topic))
        broken.push(token.href as string)
      const page =
        target.kind === 'here' ? guide : guides.find(({ topic }) => target.kind === 'guide' && topic === target.topic)
      const anchor = 'anchor' in target ? target.anchor.slice(1) : ''
      if (page && anchor !== '' && !anchorsOf(page.body).has(anchor)) broken.push(token.href as string)
    })
    expect(broken).toEqual([])
  })

  test('its page loads only the style sheet and pictures of this server, and runs no script', () => {
    const html = pageHtml(guide, guides)
    expect(html).not.toMatch(/<script|\son\w+=|<iframe|@import/)
    for (const [, picture] of html.matchAll(/<img[^>]*src="([^"]*)"/g)) {
      expect(picture).toMatch(/^\/docs\/images\/[a-z-]+\.webp$/)
      expect(existsSync(`server${picture}`)).toBe(true)
    }
    const loaded = [...html.matchAll(/<link[^>]*href="([^"]+)"/g)].map(([, to]) => to)
    expect(loaded).toEqual(['data:,', '/docs/style.css'])
  })
})

describe('HTML', () => {
  test('escapes, and makes links, anchors and tables', () => {
    expect(bodyHtml('## What is `kept`?\n\nSee [jobs](jobs.md#cancel) & <b>.'.replace('<b>', '`<b>`'))).toBe(
      '<h2 id="what-is-kept">What is <code>kept</code>? <a class="anchor" href="#what-is-kept" aria-label="Link to this section">#</a></h2>\n' +
        '<p>See <a href="/docs/guides/jobs#cancel">jobs</a> &amp; <code>&lt;b&gt;</code>.</p>\n',
    )
    expect(bodyHtml('![A "picture"](../images/one.webp)')).toBe(
      '<p><img src="/docs/images/one.webp" alt="A &quot;picture&quot;" loading="lazy"></p>\n',
    )
    expect(() => bodyHtml('![x](https://example.com/x.webp)')).toThrow('server/docs/images')
    expect(bodyHtml('| a | b |\n|---|---|\n| `1` | 2 |\n')).toContain('<td><code>1</code></td><td>2</td>')
  })

  test('comments have their own style', () => {
    expect(codeHtml("curl 'http://x/#a' # <why>\n# all", 'sh')).toBe(
      "curl 'http://x/#a' <i># &lt;why&gt;</i>\n<i># all</i>",
    )
    expect(codeHtml('# no', 'json')).toBe('# no')
  })

  test('links to the other pages, and lists all', () => {
    const two: Guide[] = ['a', 'b'].map(topic => ({
      group: 'G',
      topic,
      summary: 'sum',
      path: `guides/${topic}`,
      title: topic.toUpperCase(),
      body: '',
    }))
    expect(pageHtml(two[0]!, two)).toContain('<a href="/docs/guides/b">B →</a>')
    expect(pageHtml(two[1]!, two)).toContain('<a href="/docs/guides/a">← A</a>')
    expect(listHtml(two)).toContain('<dt><a href="/docs/guides/a">A</a></dt><dd>sum</dd>')
  })
})

describe('text for a terminal', () => {
  test('headings, paragraphs, links', () => {
    expect(
      text('One\ntwo.\n\n## Next\n\n[Jobs](jobs.md), [here](#next), [x](https://x.y), <https://x.y>, [c](/docs/c).'),
    ).toBe(
      'Title\n=====\n\nOne two.\n\nNext\n----\n\nJobs (infer help jobs), here, x (https://x.y), https://x.y, c\n(http://127.0.0.1:8787/docs/c).\n',
    )
  })

  test('code is indented and never wrapped; inline code is not wrapped between its words', () => {
    expect(text('```sh test\nls  # all\n\n  x\n```')).toContain('\n\n    ls  # all\n\n      x\n')
    const words = `${'word '.repeat(14)}\`infer model add x\``
    expect(text(words)).toContain('word word\n`infer model add x`\n')
  })

  test('list items have a hanging indent', () => {
    expect(text(`- ${'word '.repeat(20)}\n  - in\n- b\n\n1. one\n2. two`)).toContain(
      `- ${'word '.repeat(14)}word\n  word word word word word\n  - in\n- b\n\n1. one\n2. two\n`,
    )
  })

  test('tables take 80 columns, and cells wrap', () => {
    const drawn = text(`| name | what |\n|---|---|\n| \`a b\` | ${'word '.repeat(30)}|\n| c | d |`)
    expect(drawn).toContain('name   what\n-----  ---')
    expect(drawn).toContain('\n`a b`  word word')
    expect(drawn).toContain('\n       word')
    expect(drawn).toContain('\n\nc      d\n')
  })

  test('code in a table is wrapped only where it does not fit otherwise', () => {
    const code = '`infer serve --listen 127.0.0.1:8788`'
    const drawn = text(`| a | b | c |\n|---|---|---|\n| ${code} | ${'word '.repeat(9)}| ${code} |`)
    expect(drawn.split('\n').filter(line => line.length > 80)).toEqual([])
    expect(drawn).toContain('127.0.0.1:8788`')
    expect(text(`| a | b |\n|---|---|\n| ${code} | ${'word '.repeat(20)}|`)).toContain(`\n${code}  word`)
  })

  test('elements that a terminal cannot show are refused', () => {
    expect(() => text('<div>x</div>')).toThrow('no HTML')
    expect(() => text('[x](../README.md)')).toThrow("cannot link to '../README.md'")
  })
})
