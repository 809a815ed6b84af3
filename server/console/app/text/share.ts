/** Texts of the dialog that shares a conversation. */
export const shareText = {
  noLinks: 'There is no link to this conversation.',
  share: 'Share',
  title: 'Share this conversation',
  about:
    'Whoever has a link reads what is said in the branch that is shown now, without signing in, until it expires or you revoke it. What is said later, the system prompt and tools are not shown.',
  lifetime: 'Expires after',
  lifetimes: { hour: '1 hour', day: '1 day', week: '7 days', month: '30 days' },
  create: 'Create link',
  created: 'The link was created. Copy it below.',
  createdAndCopied: 'The link was created and copied.',
  links: 'Links',
  until: (time: string) => `expires ${time}`,
  copy: (until: string) => `Copy the link that ${until}`,
  revoke: (until: string) => `Revoke the link that ${until}`,
  revoked: 'The link was revoked. Whoever has it reads nothing more.',
} as const
