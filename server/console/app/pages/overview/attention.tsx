import { CircleAlert, TriangleAlert } from 'lucide-react'
import { api, useAnswer, useSession } from '../../api/client.ts'
import { useAttention } from '../../api/use-attention.ts'
import { TextLink } from '../../components/button.tsx'
import { sentenceText } from '../../components/format.ts'
import { entryOf } from '../../components/log/log-entry.ts'
import { Section } from '../../components/page.tsx'
import { attentionText as text } from '../../text/attention.ts'

const looks = {
  bad: { icon: CircleAlert, look: 'text-bad' },
  warning: { icon: TriangleAlert, look: 'text-warning' },
}

/** What a person should do something about; nothing while there is nothing. */
export function AttentionList() {
  const all = useAttention()
  const { ownerCan } = useSession()
  if (all.length === 0) return null
  return (
    <Section title={text.title}>
      <ul className="border-line bg-surface divide-line divide-y rounded-lg border">
        {all.map(({ id, kind, what, why, model, href, action }) => {
          const { icon: Icon, look } = looks[kind]
          return (
            <li key={id} className="flex flex-wrap items-start gap-x-3 gap-y-1 px-3 py-2">
              <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${look}`} />
              <div className="min-w-0 flex-1">
                <p className="break-words">{what}</p>
                {why !== '' && (
                  <p className="text-muted text-xs break-words whitespace-pre-wrap">{sentenceText(why)}</p>
                )}
                {model !== undefined && ownerCan('admin:read') && <LastLines model={model} />}
              </div>
              <TextLink href={href} label={action} />
            </li>
          )
        })}
      </ul>
    </Section>
  )
}

/** The last words of an engine, which say best why it failed. */
function LastLines({ model }: { model: string }) {
  const params = { query: { model, source: 'engine', lines: 3 } } as const
  const { data } = useAnswer(['attention', 'log', model], () => api.GET('/api/system/logs', { params }), {
    refetchInterval: 30_000,
  })
  // Only a log that is followed comes line by line.
  if (!data || !('lines' in data) || data.lines.length === 0) return null
  return (
    <pre className="bg-raised mt-1 max-h-24 overflow-auto rounded p-2 font-mono text-xs break-words whitespace-pre-wrap">
      {data.lines.map(line => entryOf(line).text).join('\n')}
    </pre>
  )
}
