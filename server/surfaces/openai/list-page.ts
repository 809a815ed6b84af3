/** Returns a page of a list in OpenAI's form. `hasMore`: whether there are entries after it. */
export const listPage = <Entry extends { id?: string | null | undefined }>(data: Entry[], hasMore: boolean) => ({
  object: 'list' as const,
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})
