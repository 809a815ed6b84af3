import { z } from 'zod'
import { readAsset } from '../../core/assets.ts'
import { Failure } from '../../core/failure.ts'
import { nearest } from '../../core/nearest.ts'
import { string } from '../../core/schemas/fields.ts'
import { ownPage } from '../http/answer/own-page.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { type Route, routeOf } from '../http/request/route.ts'
import { assetText, guideHtml, readGuides } from './guides.ts'

const route = routeOf({ tag: 'System' })

/** Pictures of the guides, made from the running console by bin/recording/screenshots.ts. */
const pictures = new Set(['console-workflow.webp', 'console-overview.webp', 'console-library.webp'])

/** Returns the routes of the guides: pages without scripts that load nothing but their stylesheet, from this server. */
export function guideRoutes(): Route[] {
  return [
    route('GET /docs/guides', 'public', {
      summary: 'List guides',
      answer: ownPage(exchange => sendPage(exchange, assetText('docs/guides.html'))),
    }),
    route('GET /docs/guides/:topic', 'public', {
      summary: 'Get guide',
      params: z.object({ topic: string('Such as `getting-started`; `/docs/guides` lists all.') }),
      answer: ownPage(exchange => {
        const { topic = '' } = exchange.params
        const topics = readGuides().map(guide => guide.topic)
        if (!topics.includes(topic)) {
          const meant = nearest(topic.slice(0, 64), topics)
          const suggestion = meant === undefined ? '' : ` Did you mean /docs/guides/${meant}?`
          throw new Failure(
            'not_found',
            `There is no guide with this name.${suggestion} /docs/guides lists all guides.`,
          )
        }
        sendPage(exchange, guideHtml(topic))
      }),
    }),
    route('GET /docs/configuration', 'public', {
      summary: 'Get configuration reference',
      answer: ownPage(exchange => sendPage(exchange, assetText('docs/configuration.html'))),
    }),
    route('GET /docs/images/:name', 'public', {
      summary: 'Get picture of a guide',
      params: z.object({ name: string('File name, such as `console-overview.webp`.') }),
      answer: ownPage(exchange => {
        const { name = '' } = exchange.params
        if (!pictures.has(name)) throw new Failure('not_found', 'The guides have no such picture.')
        exchange.send(200, readAsset(`docs/images/${name}`), 'image/webp', noCache)
      }),
    }),
    route('GET /docs/style.css', 'public', {
      summary: 'Get stylesheet of the guides',
      answer: ownPage(exchange => exchange.send(200, assetText('docs/style.css'), 'text/css; charset=utf-8', noCache)),
    }),
  ]
}

/** Sends a page of the documentation that was rendered by the build. */
const sendPage = (exchange: ClientExchange, html: string) =>
  exchange.send(200, html, 'text/html; charset=utf-8', pageHeaders)

/** Browsers must revalidate, because an upgrade changes the pages. */
const noCache = ['cache-control', 'no-cache']

/** The page may neither load from nor send to another origin, and runs no script. */
const pageHeaders = [
  'content-security-policy',
  "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy',
  'no-referrer',
  ...noCache,
]
