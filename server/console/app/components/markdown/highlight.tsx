import { parser as css } from '@lezer/css'
import { highlightCode, tagHighlighter, tags } from '@lezer/highlight'
import { parser as html } from '@lezer/html'
import { parser as javascript } from '@lezer/javascript'
import { parser as json } from '@lezer/json'
import { parser as python } from '@lezer/python'
import { parser as yaml } from '@lezer/yaml'
import type { ReactNode } from 'react'

const typescript = javascript.configure({ dialect: 'ts' })
const jsx = javascript.configure({ dialect: 'jsx ts' })

/** Parsers by the names that texts use. */
const parsers: Readonly<Record<string, typeof javascript>> = {
  css,
  html,
  xml: html,
  svg: html,
  javascript,
  js: javascript,
  mjs: javascript,
  node: javascript,
  typescript,
  ts: typescript,
  jsx,
  tsx: jsx,
  json,
  jsonc: json,
  python,
  py: python,
  python3: python,
  yaml,
  yml: yaml,
}

const colours = tagHighlighter([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.self, tags.null], class: 'text-kind-image' },
  { tag: [tags.string, tags.regexp, tags.attributeValue], class: 'text-good' },
  { tag: [tags.number, tags.bool, tags.atom, tags.unit, tags.color], class: 'text-kind-video' },
  { tag: tags.comment, class: 'text-muted' },
  {
    tag: [
      tags.propertyName,
      tags.attributeName,
      tags.tagName,
      tags.typeName,
      tags.className,
      tags.definition(tags.name),
    ],
    class: 'text-kind-text',
  },
])

/** Returns code in colours; undefined for a language that is not known. */
export function highlighted(code: string, language: string): ReactNode {
  const parser = Object.hasOwn(parsers, language) ? parsers[language] : undefined
  if (!parser) return undefined
  const parts: ReactNode[] = []
  highlightCode(
    code,
    parser.parse(code),
    colours,
    (text, look) =>
      parts.push(
        look === '' ? (
          text
        ) : (
          <span key={parts.length} className={look}>
            {text}
          </span>
        ),
      ),
    () => parts.push('\n'),
  )
  return parts
}
export type Highlight = typeof highlighted
