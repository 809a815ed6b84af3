import { readAsset } from '../../core/assets.ts'

/** A guide as the lists show it. */
export interface Guide {
  /** Such as `getting-started`: the end of its URL, and what follows `infer help`. */
  topic: string
  title: string
  /** One line. */
  summary: string
  /** The heading of the list under which it stands. */
  group: string
}

/** All guides, in the order of the lists. They are rendered by the build (`bin/guides/`). */
export const readGuides = (): Guide[] => JSON.parse(assetText('docs/guides.json')) as Guide[]

/** The page of a guide, as HTML. The topic must be one of the list. */
export const guideHtml = (topic: string): string => assetText(`docs/guides/${topic}.html`)

/** A guide as text of 80 columns with ANSI colours. The topic must be one of the list. */
export const guideText = (topic: string): string => assetText(`docs/guides/${topic}.txt`)

/** A text asset. */
export const assetText = (name: string): string => Buffer.from(readAsset(name)).toString('utf8')
