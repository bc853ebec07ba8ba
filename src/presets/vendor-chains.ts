// Which chains each vendor serves, by chain id, and the word for the chain in the vendor's
// addresses. Where a chain has no word, the address holds its id. A word with `{key}` in it is the
// whole HTTP address behind the scheme, of a chain without WebSocket. The sources stand in the rows
// of `vendors.ts`.

/** The words for chains in the addresses of a vendor: `id=word`, or the id alone. */
export const VENDOR_CHAINS = {
  alchemy: `1=eth-mainnet 11155111=eth-sepolia 560048=eth-hoodi 10=opt-mainnet
    11155420=opt-sepolia 137=polygon-mainnet 80002=polygon-amoy 42161=arb-mainnet
    421614=arb-sepolia 42170=arbnova-mainnet 8453=base-mainnet 84532=base-sepolia
    324=zksync-mainnet 300=zksync-sepolia 7777777=zora-mainnet 999999999=zora-sepolia
    81457=blast-mainnet 168587773=blast-sepolia 534352=scroll-mainnet 534351=scroll-sepolia
    59144=linea-mainnet 59141=linea-sepolia 100=gnosis-mainnet 10200=gnosis-chiado
    5000=mantle-mainnet 5003=mantle-sepolia 42220=celo-mainnet 11142220=celo-sepolia
    56=bnb-mainnet 97=bnb-testnet 43114=avax-mainnet 43113=avax-fuji 1088=metis-mainnet
    204=opbnb-mainnet 5611=opbnb-testnet 592=astar-mainnet 1101=polygonzkevm-mainnet
    2442=polygonzkevm-cardona 7000=zetachain-mainnet 7001=zetachain-testnet 747=flow-mainnet
    545=flow-testnet 480=worldchain-mainnet 4801=worldchain-sepolia 252=frax-mainnet
    2523=frax-sepolia 288=boba-mainnet 28882=boba-sepolia 1329=sei-mainnet 1328=sei-testnet
    80094=berachain-mainnet 80069=berachain-bepolia 360=shape-mainnet 11011=shape-sepolia
    8008=polynomial-mainnet 80008=polynomial-sepolia 60808=bob-mainnet 808813=bob-sepolia
    34443=mode-mainnet 919=mode-sepolia 69000=anime-mainnet 6900=anime-sepolia
    33139=apechain-mainnet 33111=apechain-curtis 232=lens-mainnet 37111=lens-sepolia
    1868=soneium-mainnet 1946=soneium-minato 30=rootstock-mainnet 31=rootstock-testnet
    994873017=lumia-prism 2030232745=lumia-beam 130=unichain-mainnet 1301=unichain-sepolia
    146=sonic-mainnet 14601=sonic-testnet 2741=abstract-mainnet 11124=abstract-testnet
    143=monad-mainnet 10143=monad-testnet 5330=superseed-mainnet 53302=superseed-sepolia
    57073=ink-mainnet 763373=ink-sepolia 2020=ronin-mainnet 2021=ronin-saigon
    6985385=humanity-mainnet 7080969=humanity-testnet 1514=story-mainnet 1315=story-aeneid
    999=hyperliquid-mainnet 998=hyperliquid-testnet 9745=plasma-mainnet 9746=plasma-testnet
    4157=crossfi-testnet 4158=crossfi-mainnet 5371=settlus-mainnet 5373=settlus-septestnet
    3637=botanix-mainnet 3636=botanix-testnet 613419=galactica-mainnet
    843843=galactica-cassiopeia 510=synd-mainnet 36900=adi-testnet 988=stable-mainnet
    2201=stable-testnet 4114=citrea-mainnet 5115=citrea-testnet 5042002=arc-testnet
    1284=moonbeam-mainnet 10218=tea-sepolia 685685=gensyn-testnet 11155931=rise-testnet
    6343=megaeth-testnet 323432=worldmobile-testnet 869=worldmobilechain-mainnet
    666666666=degen-mainnet`,
  infura: `1=mainnet 11155111=sepolia 560048=hoodi 42161=arbitrum-mainnet 421614=arbitrum-sepolia
    43114=avalanche-mainnet 43113=avalanche-fuji 8453=base-mainnet 84532=base-sepolia
    81457=blast-mainnet 168587773=blast-sepolia 56=bsc-mainnet 97=bsc-testnet 42220=celo-mainnet
    11142220=celo-sepolia 43111=hemi-mainnet 743111=hemi-testnet 59144=linea-mainnet
    59141=linea-sepolia 5000=mantle-mainnet 5003=mantle-sepolia 143=monad-mainnet
    10143=monad-testnet 204=opbnb-mainnet 5611=opbnb-testnet 10=optimism-mainnet
    11155420=optimism-sepolia 11297108109=palm-mainnet 11297108099=palm-testnet
    137=polygon-mainnet 80002=polygon-amoy 534352=scroll-mainnet 534351=scroll-sepolia
    1329=sei-mainnet 1328=sei-testnet 1923=swellchain-mainnet 1924=swellchain-testnet
    130=unichain-mainnet 1301=unichain-sepolia 324=zksync-mainnet 300=zksync-sepolia`,
  ankr: `1=eth 11155111=eth_sepolia 10=optimism 14=flare 40=telos 50=xdc 51=xdc_testnet 56=bsc
    88=velas 100=gnosis 137=polygon 196=xlayer 199=bttc 239=tac 250=fantom 324=zksync_era
    1088=metis 1101=polygon_zkevm 1116=core 1284=moonbeam 1329=sei_evm 1514=story_mainnet
    1923=swell 2222=kava_evm 4689=iotex 5000=mantle 5165=bahamut 5201=electroneum
    7332=horizen_eon 8217=kaia 8453=base 8822=iota_evm 16661=0g_mainnet_evm 42161=arbitrum
    42170=arbitrum_nova 42220=celo 42793=etherlink_mainnet 43114=avalanche 59144=linea
    81457=blast 88888=chiliz 167000=taiko 534352=scroll`,
  drpc: `1=ethereum 10=optimism 25=cronos 30=rootstock 31=rootstock-testnet 40=telos 56=bsc
    88=viction 89=viction-testnet 97=bsc-testnet 100=gnosis 109=shibarium 122=fuse 130=unichain
    133=hashkey-testnet 137=polygon 143=monad-mainnet 146=sonic 169=manta-pacific 177=hashkey
    196=xlayer 199=bittorrent 204=opbnb 232=lens 239=tac 240=cronos-zkevm-testnet 250=fantom
    252=fraxtal 255=kroma 288=boba-eth 291=orderly 300=zksync-sepolia 314=filecoin 324=zksync
    338=cronos-testnet 388=cronos-zkevm 480=worldchain 919=mode-testnet 945=bittensor-testnet
    964=bittensor 998=hyperliquid-testnet 999=hyperliquid 1088=metis 1100=dymension
    1101=polygon-zkevm 1111=wemix 1112=wemix-testnet 1114=core-testnet 1116=core 1135=lisk
    1284=moonbeam 1285=moonriver 1301=unichain-sepolia 1315=story-aeneid-testnet
    1328=sei-testnet 1329=sei 1750=metall2 1868=soneium 1923=swell 1924=swell-testnet
    1946=soneium-minato 1952=xlayer-testnet 2020=ronin 2222=kava 2288=moca
    2345=goat-mainnet-alpha 2442=polygon-zkevm-cardona 2523=fraxtal-testnet 2741=abstract
    2818=morph 4002=fantom-testnet 4200=merlin 4202=lisk-sepolia 4217=tempo-mainnet
    4326=megaeth 5000=mantle 5003=mantle-sepolia 5330=superseed 7000=zeta-chain
    7001=zeta-chain-testnet 8217=klaytn 8453=base 9745=plasma 10143=monad-testnet
    10200=gnosis-chiado 11124=abstract-sepolia 11235=haqq 13371=immutable-zkevm
    13473=immutable-zkevm-testnet 14601=sonic-testnet-v2 16602=0g-galileo-testnet
    16661=0g-mainnet 25327=everclear 31611=mezo-testnet 31612=mezo 33111=apechain-curtis
    33139=apechain 34443=mode 36888=abcore 37111=lens-testnet 42161=arbitrum
    42170=arbitrum-nova 42220=celo 42431=tempo-moderato-testnet 43111=hemi 43113=avalanche-fuji
    43114=avalanche 46630=robinhood-testnet 48898=zircuit-garfield-testnet
    48900=zircuit-mainnet 53302=superseed-sepolia 57073=ink 59141=linea-sepolia 59144=linea
    60808=bob 80002=polygon-amoy 80069=berachain-bepolia 80094=berachain 81457=blast
    84532=base-sepolia 97476=doma-testnet 97477=doma 98866=plume 102030=creditcoin
    102031=creditcoin-testnet 167000=taiko 167013=taiko-hoodi 202601=ronin-saigon
    314159=filecoin-calibration 421614=arbitrum-sepolia 534351=scroll-sepolia 534352=scroll
    543210=zero 560048=hoodi 737373=katana-testnet 743111=hemi-testnet 747474=katana
    763373=ink-sepolia 808813=bob-testnet 1440000=xrpl 5042002=arc-testnet
    6281971=dogeos-testnet 7777777=zora 11142220=celo-sepolia 11155111=sepolia
    11155420=optimism-sepolia 728126428=tron 1666600000=harmony-0`,
  blockpi: `1=ethereum 11155111=ethereum-sepolia 10=optimism 11155420=optimism-sepolia 25=cronos
    56=bsc 97=bsc-testnet 82=meter 88=viction 100=gnosis 130=unichain 1301=unichain-sepolia
    137=polygon 80002=polygon-amoy 196=xlayer 248=oasys 250=fantom 300=zksync-era-sepolia
    324=zksync-era 334=t3rn-b2n 1001=kaia-kairos 8217=kaia 1030=conflux-espace 1088=metis
    1101=polygon-zkevm 2442=polygon-zkevm-cardona 1329=sei-evm 1514=story 2741=abstract
    4200=merlin 686868=merlin-testnet 5000=mantle 7000=zetachain-evm 7001=zetachain-athens-evm
    8453=base 84532=base-sepolia 10143=monad-testnet 42161=arbitrum 421614=arbitrum-sepolia
    42170=arbitrum-nova 42220=celo 43113=avalanche-fuji 43114=avalanche 534351=scroll-sepolia
    534352=scroll 57073=ink 59141=linea-sepolia 59144=linea 80094=berachain 81457=blast
    168587773=blast-sepolia 167000=taiko`,
  tenderly: `1=mainnet 11155111=sepolia 560048=hoodi 10=optimism 137=polygon 14=flare
    100=gnosis-chain 130=unichain 232=lens 252=fraxtal 288=boba-ethereum 28882=boba-sepolia
    1030=cfx-espace 5000=mantle 8453=base 9069=af-nexus-mainnet 13371=immutable 33139=apechain
    42161=arbitrum 42170=arbitrum-nova 421614=arbitrum-sepolia 42220=celo 43113=avalanche-fuji
    43114=avalanche 57073=ink 59141=linea-sepolia 59144=linea 60808=bob 80094=berachain
    81457=blast 747474=katana`,
  onfinality: `1=eth 11155111=eth-sepolia 10=optimism 11155420=optimism-sepolia 56=bnb
    97=bnb-testnet 100=gnosis 130=unichain 1301=unichain-sepolia 137=polygon 80002=polygon-amoy
    146=sonic 250=fantom 324=zksync 592=astar 1088=metis 1284=moonbeam 1285=moonriver
    1287=moonbeam-alpha 2741=abstract 3338=peaq 4689=iotex 5000=mantle 8217=klaytn 8453=base
    84532=base-sepolia 42161=arbitrum 421614=arbitrum-sepolia 42220=celo 534352=scroll`,
  dwellir: `1=api-ethereum-mainnet.n 11155111=api-ethereum-sepolia.n
    10=api-optimism-mainnet-archive.n 11155420=api-optimism-sepolia.n
    25=api-cronos-mainnet-archive.n 56=api-bsc-mainnet-full.n 97=api-bsc-testnet-full.n
    88=api-viction-mainnet.n 100=api-gnosis-mainnet.n 130=api-unichain-mainnet.n
    1301=api-unichain-sepolia.n 137=api-polygon-mainnet-full.n 80002=api-polygon-amoy.n
    146=api-sonic-mainnet-archive.n 169=api-manta-pacific-archive.n
    250=api-fantom-mainnet-archive.n 324=api-zksync-era-mainnet-full.n 369=api-pulse-mainnet.n
    545=api-flow-evm-gateway-testnet.n 747=api-flow-evm-gateway-mainnet.n
    945=api-bittensor-testnet.n 1135=api-lisk-mainnet.n 1284=api-moonbeam.n 1285=api-moonriver.n
    1287=api-moonbase-alpha.n 1625=api-gravity-alpha-mainnet.n 2020=api-ronin-mainnet.n
    5234=api-humanode.n 8453=api-base-mainnet-archive.n 84532=api-base-sepolia-archive.n
    13371=api-immutable-zkevm-mainnet.n 42161=api-arbitrum-mainnet-archive.n
    421614=api-arbitrum-sepolia.n 42220=api-celo-mainnet-archive.n
    43114=api-avalanche-mainnet-archive.n.dwellir.com/{key}/ext/bc/C/rpc
    59144=api-linea-mainnet-archive.n 80069=api-berachain-bepolia.n
    80094=api-berachain-mainnet.n 81457=api-blast-mainnet-archive.n
    168587773=api-blast-sepolia-archive.n 88888=api-chiliz-mainnet-archive.n
    534352=api-scroll-mainnet.n 728126428=api-tron-mainnet-jsonrpc.n
    999999999=api-zora-sepolia-archive.n`,
  nodereal: `1=eth-mainnet 56=bsc-mainnet 137=polygon-mainnet 204=opbnb-mainnet
    5611=opbnb-testnet 324=open-platform.nodereal.io/{key}/zksync
    1101=open-platform.nodereal.io/{key}/polygon-zkevm-rpc
    8453=open-platform.nodereal.io/{key}/base
    42161=open-platform.nodereal.io/{key}/arbitrum-nitro`,
  "1rpc": `1=eth 11155111=sepolia 10=op 56=bnb 100=gnosis 137=matic 204=opbnb 250=ftm
    324=zksync2-era 592=astr 1101=polygon/zkevm 1116=core 1284=glmr 5000=mantle 8217=klay
    8453=base 42161=arb 42220=celo 43114=avax/c 59144=linea 534352=scroll 1666600000=one`,
  publicnode: `1=ethereum-rpc 11155111=ethereum-sepolia-rpc 10=optimism-rpc 25=cronos-evm-rpc
    56=bsc-rpc 97=bsc-testnet-rpc 100=gnosis-rpc 10200=gnosis-chiado-rpc 137=polygon-bor-rpc
    80002=polygon-amoy-bor-rpc 204=opbnb-rpc 5611=opbnb-testnet-rpc 250=fantom-rpc
    369=pulsechain-rpc 943=pulsechain-testnet-rpc 1100=dymension-evm-rpc 1284=moonbeam-rpc
    1285=moonriver-rpc 2222=kava-evm-rpc 5000=mantle-rpc 5165=bahamut-rpc 8453=base-rpc
    84532=base-sepolia-rpc 11235=haqq-evm-rpc 42161=arbitrum-one-rpc
    43113=avalanche-fuji-c-chain-rpc 43114=avalanche-c-chain-rpc 59141=linea-sepolia-rpc
    59144=linea-rpc 81457=blast-rpc
    167000=taiko-rpc 534351=scroll-sepolia-rpc 534352=scroll-rpc`,
  blockdaemon: `1=ethereum/mainnet/native 11155111=ethereum/sepolia/native
    560048=ethereum/hoodi/native 8453=base/mainnet/native/http-rpc
    84532=base/testnet/native/http-rpc 10=optimism/mainnet/native/http-rpc
    42161=arbitrum/mainnet-one/native/http-rpc 421614=arbitrum/sepolia-one/native/http-rpc
    43114=avalanche/mainnet/native/ext/bc/c/eth 43113=avalanche/testnet/native/ext/bc/c/eth
    57073=ink/mainnet/native 10143=monad/testnet/native 137=polygon/mainnet/native/http-rpc
    80002=polygon/amoy/native/http-rpc 728126428=tron/mainnet/native/jsonrpc
    3448148188=tron/nile/native/jsonrpc 196=xlayer/mainnet/native 195=xlayer/testnet/native`,
  envio: `42161 42170 421614 1313161554 43114 8453 84532 81457 168587773 288 56 97 2001 42220 44
    7560 46 1 250 14 43113 100 10200 1666600000 36888 2741 255 59144 42 169 5000 1088 17864 1284
    245022934 10 11155420 137 80002 1101 424 30 534352 11155111 148 196 195 7000 324 7777777`,
  pimlico: `1 11155111 42161 421614 137 80002 10 11155420 7777777 999999999 100 10200 59144 59141
    8453 84532 690 43114 43113 534352 534351 42220 56 97 7560 111557560 53935 335 8217 1001 34443
    919 660279 37714555429 81457 168587773 888888888 28122024 41455 122 123 60808 7979 3939 204
    42170 22222 252 957 5000 4202 31`,
  etherspot: `1=rpc 10=rpc 14=rpc 30=rpc 56=rpc 100=rpc 122=rpc 137=rpc 5000=rpc 8453=rpc
    42161=rpc 43114=rpc 59144=rpc 534352=rpc 888888888=rpc 31=testnet-rpc 51=testnet-rpc
    97=testnet-rpc 114=testnet-rpc 123=testnet-rpc 5003=testnet-rpc 80002=testnet-rpc
    84532=testnet-rpc 421614=testnet-rpc 534351=testnet-rpc 11155111=testnet-rpc
    11155420=testnet-rpc 28122024=testnet-rpc`,
} as const satisfies Readonly<Record<string, string>>;
