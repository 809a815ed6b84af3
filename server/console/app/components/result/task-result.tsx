import { Download, Images, Recycle } from 'lucide-react'
import type { CSSProperties } from 'react'
import { chatText } from '../../text/chat.ts'
import { playgroundText as text } from '../../text/playground.ts'
import { ownUrl } from '../addresses.ts'
import { Badge } from '../badge.tsx'
import { ButtonLink, buttonClass } from '../button.tsx'
import { CodeBlock, CopyButton } from '../code.tsx'
import { countText } from '../format.ts'
import { Table } from '../table.tsx'
import { Media } from './media.tsx'
import {
  filesOf,
  kindOf,
  moderationsOf,
  type ResultFile,
  type ResultKind,
  rankingOf,
  scoresOf,
  similarities,
  textOf,
  vectorsOf,
} from './result-facts.ts'

interface Shown {
  result: unknown
  inputs: unknown
}

/** The result of a task as people read it. */
export function TaskResult({ result, inputs }: Shown) {
  const files = filesOf(result)
  if (files.length > 0)
    return (
      <div className={files.length > 1 ? 'grid grid-cols-2 gap-3' : ''}>
        {files.map((file, at) => (
          <FileResult key={file.url} file={file} at={at} shown={{ result, inputs }} />
        ))}
      </div>
    )
  const kind = kindOf(result)
  if (kind) return views[kind]({ result, inputs })
  const words = textOf(result)
  if (words?.trim() === '') return <p className="text-muted">{text.noText}</p>
  return words === undefined ? (
    <CodeBlock code={JSON.stringify(result, null, 2)} label={text.result} />
  ) : (
    <div className="flex items-start gap-2">
      <p className="min-w-0 flex-1 break-words whitespace-pre-wrap">{words}</p>
      <CopyButton value={words} label={chatText.copy} />
    </div>
  )
}

const scoreColumn = { name: text.score, number: true, show: ({ score }: { score: number }) => score.toFixed(4) }

const views: Readonly<Record<ResultKind, (shown: Pick<Shown, 'result' | 'inputs'>) => React.ReactNode>> = {
  vectors: ({ result }) => <Embeddings vectors={vectorsOf(result)} />,
  ranking: ({ result, inputs }) => (
    <Table
      label={text.ranking}
      rows={rankingOf(result, inputs).map((one, at) => ({ ...one, rank: at + 1 }))}
      rowKey={({ index }) => String(index)}
      columns={[{ name: text.rank, number: true, show: 'rank' }, { name: text.document, show: 'text' }, scoreColumn]}
    />
  ),
  scores: ({ result }) => (
    <Table
      label={text.score}
      rows={scoresOf(result).map((score, at) => ({ at: at + 1, score }))}
      rowKey={({ at }) => String(at)}
      columns={[{ name: text.pair, number: true, show: 'at' }, scoreColumn]}
    />
  ),
  judgements: ({ result }) => (
    <div className="space-y-3">
      {moderationsOf(result).map(({ flagged, categories }, at) => (
        <div key={at} className="space-y-2">
          <p className="flex items-center gap-2">
            {text.text(at + 1)}
            <Badge kind={flagged ? 'bad' : 'good'}>{flagged ? text.flagged : text.notFlagged}</Badge>
          </p>
          <Table
            label={text.categories}
            rows={categories}
            rowKey="name"
            columns={[{ name: text.categories, show: 'name' }, scoreColumn]}
          />
        </div>
      ))}
    </div>
  ),
}

function Embeddings({ vectors }: { vectors: readonly (readonly number[])[] }) {
  const dimensions = countText(vectors[0]?.length ?? 0)
  if (vectors.length < 2) return <p>{text.oneText(dimensions)}</p>
  const rows = similarities(vectors)
  return (
    <figure className="space-y-2">
      <div className="border-line overflow-x-auto rounded-md border">
        <table aria-label={text.similarity} className="w-full text-right tabular-nums">
          <thead>
            <tr>
              <td />
              {rows.map((_, at) => (
                <th key={at} scope="col" className="px-3 py-2 font-medium whitespace-nowrap">
                  {text.text(at + 1)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-line divide-y">
            {rows.map((row, at) => (
              <tr key={at}>
                <th scope="row" className="px-3 py-2 text-left font-medium whitespace-nowrap">
                  {text.text(at + 1)}
                </th>
                {row.map((value, column) => (
                  <td key={column} className={`px-3 py-2 ${at === column ? 'text-muted' : ''}`}>
                    {value.toFixed(3)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption className="text-muted text-xs">{text.similarityHint(dimensions)}</figcaption>
    </figure>
  )
}

/** As large as the image or video will be: what stands below does not move when it comes. */
function placeOf({ kind, size }: ResultFile): CSSProperties | undefined {
  if (!size) return undefined
  const [width, height] = size
  const aspectRatio = `${width} / ${height}`
  return kind === 'image' ? { aspectRatio, width: `min(${width}px, ${(70 * width) / height}dvh)` } : { aspectRatio }
}

function FileResult({ file, at, shown }: { file: ResultFile; at: number; shown: Shown }) {
  const url = ownUrl(file.url)
  const { prompt = '', seed_used: seed } = { ...(shown.inputs as object), ...(shown.result as object) } as {
    prompt?: string
    seed_used?: number
  }
  return (
    <figure className="min-w-0 space-y-2">
      <Media
        kind={file.kind}
        url={url}
        label={file.kind === 'image' ? text.image(at + 1, prompt) : text[file.kind]}
        className={`border-line rounded-md border ${file.kind === 'image' ? 'max-h-[70dvh] max-w-full' : 'w-full'}`}
        style={placeOf(file)}
        whole
      />
      <figcaption className="flex flex-wrap items-center gap-2">
        <a href={url} download={file.name} className={buttonClass({ small: true })}>
          <Download aria-hidden className="size-4" />
          {text.download}
        </a>
        {file.id !== undefined && (
          <>
            <ButtonLink small href={`/playground?file=${file.id}`} icon={Recycle} label={text.reuse} />
            <ButtonLink small href={`/library/${file.id}`} icon={Images} label={text.openInLibrary} />
          </>
        )}
        {seed !== undefined && <span className="text-muted text-xs">{text.seed(seed)}</span>}
      </figcaption>
    </figure>
  )
}
