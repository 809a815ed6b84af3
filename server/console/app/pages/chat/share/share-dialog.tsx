import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, at, dataOf, type Schema, useAnswer } from '../../../api/client.ts'
import { useAction } from '../../../components/announcements.tsx'
import { Button, IconButton } from '../../../components/button.tsx'
import { CopyButton, copy } from '../../../components/code.tsx'
import { Dialog } from '../../../components/dialog.tsx'
import { SelectField } from '../../../components/fields.tsx'
import { dateText } from '../../../components/format.ts'
import { Queried } from '../../../components/page.tsx'
import { chatText } from '../../../text/chat.ts'
import { shareText as text } from '../../../text/share.ts'

/** Lifetimes to choose from, seconds. */
const lifetimes = { hour: 3_600, day: 86_400, week: 7 * 86_400, month: 30 * 86_400 } as const

export interface ShareDialogProps {
  /** Id of a conversation that is kept on the server. */
  id: string
  /** Writes what the conversation has until now, so that the link shows it. Rejects if that failed. */
  keep: () => Promise<void>
  close: () => void
}

/** Makes links with which others read a conversation, and revokes them. */
export default function ShareDialog({ id, keep, close }: ShareDialogProps) {
  const [lifetime, choose] = useState<keyof typeof lifetimes>('week')
  const key = ['chat', 'links', id]
  const links = useAnswer(key, () => api.GET('/api/conversations/{id}/links', at({ id })))
  const create = useAction(
    async () => {
      await keep()
      const body = { expires_in: lifetimes[lifetime] }
      const { url } = await dataOf(api.POST('/api/conversations/{id}/links', { ...at({ id }), body }))
      return copy(url)
    },
    isCopied => (isCopied ? text.createdAndCopied : text.created),
    key,
  )
  const revoke = useAction(
    async (link: string) => {
      await api.DELETE('/api/conversations/{id}/links/{link}', at({ id, link }))
    },
    () => text.revoked,
    key,
  )
  return (
    <Dialog title={text.title} close={close}>
      <p className="text-muted">{text.about}</p>
      <div className="flex items-end gap-2">
        <div className="min-w-0 flex-1">
          <SelectField
            label={text.lifetime}
            value={lifetime}
            options={Object.keys(lifetimes).map(one => ({
              id: one,
              name: text.lifetimes[one as keyof typeof lifetimes],
            }))}
            change={value => choose(value as keyof typeof lifetimes)}
          />
        </div>
        <Button primary busy={create.isPending} onClick={() => create.mutate()} label={text.create} />
      </div>
      <Queried query={links} lines={2}>
        {({ links: all }) =>
          all.length === 0 ? (
            <p className="text-muted text-xs">{text.noLinks}</p>
          ) : (
            <ul aria-label={text.links} className="divide-line divide-y">
              {all.map(link => (
                <LinkRow key={link.id} link={link} revoke={() => revoke.mutate(link.id)} />
              ))}
            </ul>
          )
        }
      </Queried>
      <div className="flex justify-end">
        <Button onClick={close} label={chatText.done} />
      </div>
    </Dialog>
  )
}

function LinkRow({ link: { url, expires_at }, revoke }: { link: Schema<'ConversationLink'>; revoke: () => void }) {
  const until = text.until(dateText(expires_at))
  return (
    <li className="flex items-center gap-1 py-1">
      <div className="min-w-0 flex-1">
        <a href={url} target="_blank" rel="noreferrer" className="text-accent block truncate font-mono text-xs">
          {url}
        </a>
        <p className="text-muted text-xs">{until}</p>
      </div>
      <CopyButton value={url} label={text.copy(until)} />
      <IconButton danger icon={Trash2} label={text.revoke(until)} onClick={revoke} />
    </li>
  )
}
