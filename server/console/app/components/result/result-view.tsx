import { Download } from 'lucide-react'
import { memo } from 'react'
import { resultText } from '../../text/result.ts'
import { buttonClass } from '../button.tsx'
import { CodeBlock, CopyButton } from '../copy.tsx'
import { partsOfResult, type ResultPart } from './parts-of-result.ts'

/** The result of any task: images, videos and sounds as such, text as text, everything else as data. */
export const ResultView = memo(function ResultView({ result }: { result: unknown }) {
  const parts = partsOfResult(result)
  return (
    <div className="space-y-3">
      {parts.map((part, at) => (
        <Part key={at} part={part} />
      ))}
    </div>
  )
})

function Part({ part }: { part: ResultPart }) {
  switch (part.kind) {
    case 'text':
      return <TextPart text={part.text} reasoning={part.reasoning} />
    case 'ranking':
      return (
        <ol className="space-y-1">
          {part.rows.map(({ index, score, text }) => (
            <li key={index} className="flex gap-3">
              <span className="text-muted w-16 shrink-0 text-right tabular-nums">{score.toFixed(3)}</span>
              <span className="min-w-0 break-words">{text ?? resultText.document(index)}</span>
            </li>
          ))}
        </ol>
      )
    case 'vectors':
      return <p>{resultText.vectors(part.count, part.dimensions)}</p>
    case 'data':
      return <CodeBlock label={resultText.data} code={JSON.stringify(part.value, null, 2)} />
    default:
      return <MediaPart part={part} />
  }
}

function TextPart({ text, reasoning }: { text: string; reasoning: string | undefined }) {
  return (
    <div className="bg-surface border-line relative rounded-md border p-3 pr-12">
      {reasoning !== undefined && (
        <details className="text-muted mb-2">
          <summary>{resultText.reasoning}</summary>
          <p className="mt-1 break-words whitespace-pre-wrap">{reasoning}</p>
        </details>
      )}
      <p className="break-words whitespace-pre-wrap">{text}</p>
      <div className="absolute top-1 right-1">
        <CopyButton value={text} />
      </div>
    </div>
  )
}

function MediaPart({ part }: { part: Extract<ResultPart, { url: string }> }) {
  const { kind, url, name, description, poster } = part
  return (
    <figure className="space-y-1.5">
      {kind === 'image' && (
        <img
          src={url}
          alt={resultText.image(name)}
          className="border-line max-h-[32rem] max-w-full rounded-md border"
        />
      )}
      {kind === 'video' && (
        // Generated videos have no speech that captions could repeat.
        <video
          src={url}
          poster={poster}
          controls
          preload="metadata"
          aria-label={resultText.video(name)}
          className="border-line max-h-[32rem] max-w-full rounded-md border"
        />
      )}
      {kind === 'audio' && <audio src={url} controls preload="metadata" aria-label={resultText.audio(name)} />}
      <figcaption className="text-muted flex flex-wrap items-center gap-2 text-xs">
        <a href={url} download={name} className={buttonClass({ small: true })}>
          <Download aria-hidden className="size-3.5" />
          {resultText.download}
        </a>
        <span className="break-all">{[name, description].filter(Boolean).join(' · ')}</span>
      </figcaption>
    </figure>
  )
}
