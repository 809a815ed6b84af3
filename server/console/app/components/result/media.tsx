import type { CSSProperties } from 'react'
import type { Medium } from './result-facts.ts'

interface MediaProps {
  kind: Medium
  url: string
  label: string
  className: string
  style?: CSSProperties | undefined
  audioClass?: string
  whole?: boolean
}

/** An image, a video or audio. One that is `whole` is loaded at once, and a video is then repeated. */
export function Media({ kind, url, label, className, style, audioClass = 'w-full', whole = false }: MediaProps) {
  const [loading, preload] = whole ? [] : (['lazy', 'metadata'] as const)
  if (kind === 'image') return <img src={url} alt={label} loading={loading} className={className} style={style} />
  if (kind === 'video')
    return (
      // oxlint-disable-next-line jsx-a11y/media-has-caption
      <video src={url} controls loop={whole} preload={preload} aria-label={label} className={className} style={style} />
    )
  // oxlint-disable-next-line jsx-a11y/media-has-caption
  return <audio src={url} controls preload={preload} aria-label={label} className={audioClass} />
}
